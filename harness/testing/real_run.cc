// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/testing/real_run.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/testing/real_bkm.h"

namespace bkm {

absl::StatusOr<RealRun> RealRun::Make(std::vector<std::string> arguments, const std::string& name,
                                      int worst) {
  ASSIGN_OR_RETURN(Json run, RunRealCells(std::move(arguments), name, {}, worst));
  return RealRun(RealRunFolder(name), std::move(run));
}

Json RealRun::Cell(const Fields& fields) const {
  Json found;
  int count = 0;
  for (const Json& cell : run_["cells"]) {
    const bool fits = std::all_of(fields.begin(), fields.end(), [&](const auto& field) {
      const Json& at = cell.contains(field.first) ? cell : cell["probe"];
      return at.value(field.first, "") == field.second;
    });
    if (cell["role"] != "subject" || !fits) continue;
    found = cell;
    ++count;
  }
  if (count == 1) return found;
  return {{"verdict", absl::StrCat(count, " such cells: ", Json(fields).dump())},
          {"stage", ""},
          {"reason", ""},
          {"message", ""},
          {"blame", Json::array()},
          {"dir", "none"}};
}

std::string RealRun::VerdictOf(const Fields& fields) const {
  const Json cell = Cell(fields);
  return absl::StrCat(cell["verdict"].get<std::string>(), " at ", cell["stage"].get<std::string>());
}

std::string RealRun::ReasonOf(const Fields& fields) const {
  return absl::StrCat(VerdictOf(fields), ", ", Cell(fields)["reason"].get<std::string>());
}

Json RealRun::FileOf(const Fields& fields, const std::string& file) const {
  return ReadJsonFile(folder_ / Cell(fields)["dir"].get<std::string>() / file).value_or(Json());
}

}  // namespace bkm
