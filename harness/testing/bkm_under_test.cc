// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/testing/bkm_under_test.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <regex>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "harness/base/check.h"
#include "harness/base/files.h"

namespace bkm {
namespace fs = std::filesystem;
namespace {

// A limit is noticed a little late: by how much is chance.
std::string WithoutAmounts(const std::string& message) {
  static const auto& kAmount = *new std::regex("([0-9]+)( [A-Za-z]+)? of ([0-9]+)");
  return std::regex_replace(message, kAmount, "N$2 of $3");
}

// Subject folders may be written to, also where the original may not.
void CopyWritable(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    const fs::path target = to / entry.path().filename();
    if (entry.is_directory()) {
      CopyWritable(entry.path(), target);
    } else {
      HARNESS_CHECK(WriteFile(target, *ReadFile(entry.path())).ok());
    }
  }
}

}  // namespace

fs::path Runfile(const std::string& path) {
  return fs::path(std::getenv("TEST_SRCDIR")) / std::getenv("TEST_WORKSPACE") / path;
}

BkmUnderTest::BkmUnderTest() {
  folder_ = fs::canonical(*CreateTempDirectory(std::getenv("TEST_TMPDIR"), "bkm"));
  CopyWritable(Runfile("fixtures"), folder_ / "fixtures");
  CopyWritable(Runfile("harness/cell/python"), root() / "harness/cell/python");
  CopyWritable(Runfile("matrices/runtimes"), root() / "matrices/runtimes");
}

BkmUnderTest::~BkmUnderTest() {
  const char* outputs = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  std::error_code error;
  if (outputs && ::testing::UnitTest::GetInstance()->Failed() && fs::exists(out(), error))
    fs::copy(out(), fs::path(outputs) / folder_.filename(), fs::copy_options::recursive, error);
  RemoveTree(folder_).IgnoreError();
}

fs::path BkmUnderTest::WriteMatrix(const std::vector<std::string>& behaviours,
                                   int timeout_s) const {
  Json groups = Json::array();
  for (const std::string& behaviour : behaviours) {
    const std::string pair = absl::StrCat("path:../packages/", behaviour);
    groups.push_back({{"engine", {{"kind", "fixture"}, {"subjects", {pair + "/engine"}}}},
                      {"library", {pair + "/library"}},
                      {"runtime", {"bare"}},
                      {"probe", {{"attention", {"flex"}}, {"steps", 1}}}});
  }
  const fs::path path = folder_ / "fixtures/matrices/chosen.json";
  HARNESS_CHECK(WriteFile(path, ToText(Json{{"schema", 1},
                                            {"name", "chosen"},
                                            {"limits", {{"timeout_s", timeout_s}}},
                                            {"groups", groups}}))
                    .ok());
  return path;
}

void BkmUnderTest::WritePair(const std::string& behaviour, const std::string& engine_import) const {
  CopyWritable(packages() / "passes", packages() / behaviour);
  const fs::path engine = packages() / behaviour / "engine/fake_engine/__init__.py";
  const std::string rest = *ReadFile(packages() / "passes/engine/fake_engine/__init__.py");
  HARNESS_CHECK(WriteFile(engine, absl::StrCat(rest, "\n", engine_import)).ok());
}

Command BkmUnderTest::MakeCommand(std::vector<std::string> arguments,
                                  std::map<std::string, std::string> environment) const {
  Command command{.argv = {Runfile("harness/cli/bkm").string()},
                  .set_env = {{"BKM_ROOT", root().string()},
                              {"BKM_BIN", Runfile("").string()},
                              {"BKM_CACHE", (folder_ / "cache").string()},
                              // Nothing here may need a registry.
                              {"BKM_UV", (folder_ / "no-uv").string()}},
                  .unset_env = {"BKM_GIT_MIRRORS", "BKM_LAUNCHER", "BKM_PYTHON"},
                  .directory = folder_,
                  .timeout = std::chrono::seconds(120)};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  const bool runs = !arguments.empty() && arguments[0] == "run";
  if (runs) command.argv.insert(command.argv.end(), {"--out", out().string(), "--jobs", "2"});
  for (const auto& [name, value] : environment) {
    command.set_env[name] = value;
    std::erase(command.unset_env, name);
  }
  return command;
}

ProcessResult BkmUnderTest::Run(std::vector<std::string> arguments,
                                std::map<std::string, std::string> environment) const {
  return *RunCommand(MakeCommand(std::move(arguments), std::move(environment)));
}

bool BkmUnderTest::RunAndKill(std::vector<std::string> arguments,
                              std::map<std::string, std::string> environment,
                              std::chrono::microseconds after, const fs::path& log) const {
  const PipedProcess process =
      *StartPiped(MakeCommand(std::move(arguments), std::move(environment)), log);
  std::this_thread::sleep_for(after);
  ::kill(-process.pid, SIGKILL);
  int status = 0;
  while (::waitpid(process.pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status);
}

std::map<std::string, std::string> BkmUnderTest::EnvironmentWithGpu() const {
  const fs::path driver = folder_ / "driver/nvidia-smi";
  const char* lists = "#!/bin/sh\necho '9.0, 81559, 550.54, GPU-1, NVIDIA H100'\n";
  HARNESS_CHECK(WriteFile(driver, lists).ok());
  fs::permissions(driver, fs::perms::owner_all);
  return {{"PATH", absl::StrCat(driver.parent_path().string(), ":/usr/bin:/bin")}};
}

Json BkmUnderTest::ReadRun() const { return *ReadJsonFile(out() / "run.json"); }

Json BkmUnderTest::CellOf(const Json& run, const std::string& behaviour) {
  for (const Json& cell : run["cells"]) {
    if (absl::EndsWith(cell["engine_subject"].get<std::string>(),
                       absl::StrCat("/", behaviour, "/engine")))
      return cell;
  }
  ADD_FAILURE() << "no cell of " << behaviour << " in " << run;
  return Json::object();
}

fs::path BkmUnderTest::CellFolder(const std::string& behaviour) const {
  return out() / CellOf(ReadRun(), behaviour).value("dir", "none");
}

std::string BkmUnderTest::WithoutPaths(std::string text) const {
  return absl::StrReplaceAll(text, {{folder_.string(), "FOLDER"}});
}

std::vector<std::string> BkmUnderTest::RunningProcesses() const {
  std::vector<std::string> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
    const std::string pid = entry.path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const absl::StatusOr<std::string> line = ReadFile(entry.path() / "cmdline");
    const absl::StatusOr<std::string> environment = ReadFile(entry.path() / "environ");
    const std::string directory = fs::read_symlink(entry.path() / "cwd", error).string();
    const bool is_this_test = pid == std::to_string(::getpid());
    const bool ours = absl::StrContains(directory, folder_.string()) ||
                      (line.ok() && absl::StrContains(*line, folder_.string())) ||
                      (environment.ok() && absl::StrContains(*environment, folder_.string()));
    if (ours && !is_this_test) found.push_back(line.value_or(pid));
  }
  return found;
}

Json StableRun(const BkmUnderTest& bkm, const Json& run) {
  Json cells = Json::array();
  for (const Json& cell : run["cells"]) {
    Json stable = Json::object();
    for (const char* key : {"id", "role", "verdict", "stage", "reason", "message", "blame",
                            "engine_label", "library_label"}) {
      if (cell.contains(key)) stable[key] = cell[key];
    }
    stable["id"] = bkm.WithoutPaths(stable["id"].get<std::string>());
    if (stable.contains("message"))
      stable["message"] = WithoutAmounts(bkm.WithoutPaths(stable["message"].get<std::string>()));
    cells.push_back(std::move(stable));
  }
  return {{"schema", run["schema"]},
          {"matrix", run["matrix"]},
          {"finished", run["finished"]},
          {"counts", run["counts"]},
          {"cells", std::move(cells)}};
}

std::string Difference(const Json& wanted, const Json& got) {
  return wanted == got ? "" : ToText(Json::diff(wanted, got));
}

bool IsCutOff(const fs::path& file) {
  const std::string extension = file.extension();
  return extension.size() == 7 && fs::exists(fs::path(file).replace_extension());
}

}  // namespace bkm
