// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/asked_cell.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bkm {
namespace {

std::string AskedVersion(const SubjectSpec& subject, const std::string& label) {
  SubjectSpec asked = subject;
  if (!label.empty()) asked.revision = label;
  return asked.ToString();
}

}  // namespace

std::string AskedText(const Cell& cell) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : CellFields(cell)) {
    std::string asked = value;
    if (key == "engine" && cell.engine_subject)
      asked = absl::StrCat(cell.engine, "@", AskedVersion(*cell.engine_subject, cell.engine_label));
    if (key == "library" && cell.library_subject)
      asked = AskedVersion(*cell.library_subject, cell.library_label);
    parts.push_back(absl::StrCat(key, "=", asked));
  }
  return absl::StrJoin(parts, ",");
}

}  // namespace bkm
