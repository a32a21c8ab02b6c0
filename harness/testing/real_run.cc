// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/testing/real_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/base/subprocess.h"

namespace bkm {
namespace fs = std::filesystem;
namespace {

// The checkout itself and not a tree of links into it: a cell has a /tmp of its own, where a
// checkout may lie.
fs::path Checkout() {
  const fs::path file = "harness/cell/python/bkm_cell/cell.py";
  fs::path root = fs::canonical(file);
  for (auto part = file.begin(); part != file.end(); ++part) root = root.parent_path();
  return root;
}

}  // namespace

absl::StatusOr<RealRun> RealRun::Make(std::vector<std::string> arguments, const std::string& name) {
  const fs::path out = fs::path(::testing::TempDir()) / name;
  Command command{
      .argv = {"harness/cli/bkm", "run"},
      .set_env = {{"BKM_ROOT", Checkout().string()}, {"BKM_BIN", fs::current_path().string()}}};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.argv.insert(command.argv.end(), {"--quiet", "--out", out.string()});
  ASSIGN_OR_RETURN(const ProcessResult result, RunCommand(command));
  if (result.exit_code != 0) {
    return absl::UnavailableError(
        absl::StrCat("bkm ended with ", result.exit_code, ": ", result.err));
  }
  ASSIGN_OR_RETURN(Json run, ReadJsonFile(out / "run.json"));
  return RealRun(out, std::move(run));
}

Json RealRun::Cell(const Fields& fields) const {
  Json found;
  int count = 0;
  for (const Json& cell : run_["cells"]) {
    const bool fits = std::all_of(fields.begin(), fields.end(), [&](const auto& field) {
      return cell.value(field.first, "") == field.second;
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

fs::path MirrorOf(const std::string& name) {
  const char* mirrors = std::getenv("BKM_GIT_MIRRORS");
  if (mirrors == nullptr || *mirrors == '\0') return "";
  const fs::path mirror = fs::path(mirrors) / (name + ".git");
  return fs::exists(mirror) ? mirror : fs::path();
}

std::string ReasonToSkip(const absl::Status& status) {
  return absl::StrContains(status.message(), "network") ? std::string(status.message()) : "";
}

}  // namespace bkm
