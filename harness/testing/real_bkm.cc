// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/testing/real_bkm.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// The checkout itself and not a tree of links into it: a cell has a /tmp of its own, where a
// checkout may lie.
fs::path Checkout() {
  constexpr char kFile[] = "harness/cell/python/bkm_cell/cell.py";
  fs::path root = fs::canonical(kFile);
  for (const fs::path& part : fs::path(kFile)) {
    static_cast<void>(part);
    root = root.parent_path();
  }
  return root;
}

// Starts `program`, and whatever bkm that starts, on this checkout and these binaries.
Command RealCommand(const std::string& program, std::map<std::string, std::string> environment) {
  Command command{.argv = {program}, .set_env = std::move(environment)};
  command.set_env["BKM_ROOT"] = Checkout().string();
  command.set_env["BKM_BIN"] = fs::current_path().string();
  // A test measures what it asserts.
  command.set_env.try_emplace("BKM_OBSERVATIONS", RealRunFolder("observations").string());
  return command;
}

}  // namespace

fs::path Mirrors() {
  const char* value = std::getenv("BKM_GIT_MIRRORS");
  return value ? value : "";
}

absl::Status RunGit(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "git");
  ASSIGN_OR_RETURN(const ProcessResult result, RunCommand({.argv = std::move(arguments)}));
  return result.ok() ? absl::OkStatus() : absl::InternalError(result.err);
}

absl::Status BorrowMirror(const std::string& name, const fs::path& folder) {
  const fs::path mirror = Mirrors() / (name + ".git"), clone = folder / (name + ".git");
  RETURN_IF_ERROR(RunGit({"init", "-q", "--bare", clone.string()}));
  std::error_code error;
  if (fs::exists(mirror / "shallow")) fs::copy_file(mirror / "shallow", clone / "shallow", error);
  return WriteFile(clone / "objects/info/alternates", (mirror / "objects").string() + "\n");
}

absl::StatusOr<ProcessResult> RunRealScript(const std::string& script,
                                            const std::vector<std::string>& arguments) {
  Command command = RealCommand((Checkout() / script).string(), {});
  command.set_env["BKM"] = fs::absolute("harness/cli/bkm").string();
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  return RunCommand(command);
}

absl::StatusOr<ProcessResult> RunRealBkm(std::vector<std::string> arguments,
                                         std::map<std::string, std::string> environment) {
  Command command = RealCommand("harness/cli/bkm", std::move(environment));
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  return RunCommand(command);
}

std::vector<std::string> Filtered(std::vector<std::string> arguments,
                                  const std::vector<std::string>& filters) {
  for (const std::string& filter : filters) arguments.insert(arguments.end(), {"--filter", filter});
  return arguments;
}

fs::path RealRunFolder(const std::string& name) { return fs::path(::testing::TempDir()) / name; }

absl::StatusOr<Json> RunRealCells(std::vector<std::string> arguments, const std::string& name,
                                  std::map<std::string, std::string> environment, int worst) {
  const fs::path out = RealRunFolder(name);
  arguments.insert(arguments.begin(), "run");
  arguments.insert(arguments.end(), {"--quiet", "--no-store", "--out", out.string()});
  ASSIGN_OR_RETURN(const ProcessResult result,
                   RunRealBkm(std::move(arguments), std::move(environment)));
  if (result.exit_code > worst)
    return absl::UnavailableError(
        absl::StrCat("bkm ended with ", result.exit_code, ": ", result.err));
  return ReadJsonFile(out / "run.json");
}

}  // namespace bkm
