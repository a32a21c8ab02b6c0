// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/session/expected_run.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/model/asked_cell.h"
#include "harness/report/labels.h"
#include "harness/runner/repeats.h"

namespace bkm {
namespace {

const char* Heading(SurpriseKind kind) {
  switch (kind) {
    case SurpriseKind::kUnlisted:
      return "Unexpected failure";
    case SurpriseKind::kOtherReason:
      return "Failed for another reason than expected";
    case SurpriseKind::kPassing:
      return "Expected to fail, but passed";
    case SurpriseKind::kNeverSeen:
      return "Stale expectation";
  }
  return "";
}

}  // namespace

absl::StatusOr<std::optional<Expectations>> FindExpectations(
    const std::string& asked, const std::filesystem::path& matrix_file) {
  std::filesystem::path file = asked;
  std::error_code error;
  if (!file.empty() && !std::filesystem::is_regular_file(file, error))
    return absl::NotFoundError(absl::StrCat(
        "--expect ", asked, ": there is no such file (bkm accept RUN --expect FILE makes one)"));
  if (file.empty()) {
    if (matrix_file.empty()) return std::optional<Expectations>();
    file = Expectations::FileOf(matrix_file);
    if (!std::filesystem::exists(file, error)) return std::optional<Expectations>();
  }
  ASSIGN_OR_RETURN(Expectations expectations, Expectations::Read(file));
  return std::optional<Expectations>(std::move(expectations));
}

std::vector<Surprise> SurprisesOf(const std::optional<Expectations>& expectations,
                                  const RunRecord& run, bool whole) {
  if (!expectations || !run.finished) return {};
  return expectations->Compare(run, whole);
}

std::vector<PreparedCell> WithSuspects(const std::vector<PreparedCell>& cells, const RunRecord& run,
                                       const std::vector<Surprise>& surprises) {
  std::set<std::string> suspects;
  for (const Surprise& surprise : surprises) {
    const bool red =
        surprise.kind == SurpriseKind::kUnlisted || surprise.kind == SurpriseKind::kOtherReason;
    if (red && RepeatsOf(run, *surprise.cell).empty()) suspects.insert(surprise.cell->id);
  }
  std::vector<PreparedCell> again = cells;
  for (const PreparedCell& cell : cells) {
    if (!suspects.contains(cell.record.id)) continue;
    std::vector<PreparedCell> twice = WithRepeats({cell}, 2);
    // A cell that was stopped before it ran has no repeat.
    again.insert(again.end(), std::make_move_iterator(twice.begin() + 1),
                 std::make_move_iterator(twice.end()));
  }
  return again;
}

absl::Status WriteRetryList(const RunDirectory& directory, const RunRecord& run) {
  OrderedJson cells = OrderedJson::array();
  for (const CellRecord& cell : run.cells) {
    if (cell.role != CellRole::kSubject || !cell.verdict) continue;
    const bool flaky = cell.is_flaky();
    if (!flaky && cell.verdict->kind != VerdictKind::kSpurious) continue;
    cells.push_back(
        {{"id", cell.id},
         {"filter", AskedText(cell.cell)},
         {"why", flaky ? "flaky" : "spurious"},
         {"verdicts", flaky ? cell.stability->verdicts
                            : std::map<std::string, int>{{ShortText(*cell.verdict), 1}}}});
  }
  const std::filesystem::path path = directory.root() / "retry.json";
  if (cells.empty()) return RemoveTree(path);
  return WriteFile(path, ToText(OrderedJson{{"schema", 1}, {"cells", cells}}));
}

std::string SurprisesText(const std::vector<Surprise>& surprises) {
  std::string out;
  for (const SurpriseKind kind : {SurpriseKind::kUnlisted, SurpriseKind::kOtherReason,
                                  SurpriseKind::kPassing, SurpriseKind::kNeverSeen}) {
    std::string of_kind;
    for (const Surprise& surprise : surprises) {
      if (surprise.kind == kind) absl::StrAppend(&of_kind, "  ", surprise.message, "\n");
    }
    if (!of_kind.empty()) absl::StrAppend(&out, "\n", Heading(kind), ":\n", of_kind);
  }
  return Printable(std::move(out));
}

}  // namespace bkm
