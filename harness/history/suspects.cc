// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/suspects.h"

#include <algorithm>
#include <optional>
#include <string>

#include "harness/base/status_macros.h"

namespace bkm {
namespace {

// The mainline from the older end, or else from the oldest commit, to the newer end.
std::vector<int> LineOf(const HistoryAxis& axis) {
  std::vector<int> line;
  for (const int commit : axis.graph().Mainline(axis.late())) {
    line.push_back(commit);
    if (axis.early() && (commit == *axis.early() || axis.graph().IsAncestor(commit, *axis.early())))
      break;
  }
  std::reverse(line.begin(), line.end());
  return line;
}

}  // namespace

absl::StatusOr<std::vector<int>> FindSuspects(ApiSession& api, const HistoryAxis& axis) {
  const Cell& cell = axis.CellAt(axis.late()).cell;
  if (!HasStaticCheck(cell) || axis.kind() == AxisKind::kBoth) return std::vector<int>();
  const bool moves_library = axis.kind() == AxisKind::kLibrary;
  const SubjectSpec& fixed = moves_library ? *cell.engine_subject : *cell.library_subject;
  ASSIGN_OR_RETURN(Versions* const versions, api.versions());
  ASSIGN_OR_RETURN(ApiCheck* const check, api.CheckOf(*FindEngineKind(cell.engine)));
  ASSIGN_OR_RETURN(const auto other, versions->Find({fixed.ToString()}));
  const std::vector<int> line = LineOf(axis);
  std::vector<std::string> ids;
  for (const int commit : line) ids.push_back(axis.CommitAt(commit).id);
  ASSIGN_OR_RETURN(const std::vector<Tree> trees,
                   versions->TreesAt(axis.SourceAt(axis.late()), ids));
  std::vector<int> suspects;
  std::optional<bool> before;
  for (size_t i = 0; i < line.size(); ++i) {
    if (!trees[i]) {
      before.reset();
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<Violation> broken,
                     moves_library ? check->CheckRed(other[0].tree, trees[i])
                                   : check->CheckRed(trees[i], other[0].tree));
    if (before && *before == broken.empty()) suspects.push_back(line[i]);
    before = !broken.empty();
  }
  std::reverse(suspects.begin(), suspects.end());
  return suspects;
}

}  // namespace bkm
