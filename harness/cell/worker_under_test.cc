// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/worker_under_test.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/check.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"

namespace bkm {
namespace fs = std::filesystem;
namespace {

fs::path Runfile(absl::string_view path) {
  return fs::path(std::getenv("TEST_SRCDIR")) / std::getenv("TEST_WORKSPACE") / std::string(path);
}

}  // namespace

fs::path WorkerUnderTest::Binary() { return Runfile("harness/cell/cell_worker"); }

bool WorkerUnderTest::IsAlone() { return std::getenv("BKM_TEST_ALONE") != nullptr; }

std::vector<std::string> WorkerUnderTest::Arguments(const std::string& command) {
  std::vector<std::string> arguments = {
      Binary(),   command,         "--python",
      BKM_PYTHON, "--python-code", Runfile("harness/cell/testdata/fake_cell")};
  if (IsAlone()) arguments.push_back("--alone");
  return arguments;
}

WorkerUnderTest::WorkerUnderTest(int jobs, std::vector<std::string> more,
                                 const std::string& python) {
  folder_ = *CreateTempDirectory(std::getenv("TEST_TMPDIR"), "worker");
  HARNESS_CHECK(WriteFile(folder_ / "tree/engine.py", "kept = True\n").ok());
  HARNESS_CHECK(WriteFile(folder_ / "probe/probe.json", "{}").ok());
  Command command;
  command.argv = Arguments("serve");
  if (!python.empty()) command.argv[3] = python;
  command.argv.insert(command.argv.end(), {"--jobs", absl::StrCat(jobs)});
  command.argv.insert(command.argv.end(), more.begin(), more.end());
  command.set_env = {{"BKM_TEST_SURPRISE", "from the user"}};
  absl::StatusOr<PipedProcess> process = StartPiped(command, "");
  HARNESS_CHECK(process.ok()) << std::string(process.status().message());
  pid_ = process->pid;
  to_ = std::move(process->to_child);
  from_ = std::move(process->from_child);
  ready_ = Read();
}

WorkerUnderTest::~WorkerUnderTest() {
  if (pid_ > 0) Finish();
  RemoveTree(folder_).IgnoreError();
}

bool WorkerUnderTest::Has(absl::string_view name) const {
  const Json& protections = ready_["sandbox"]["protections"];
  return std::any_of(protections.begin(), protections.end(),
                     [&](const Json& entry) { return entry == std::string(name); });
}

Json WorkerUnderTest::Request(const std::string& adapter) const {
  return {
      {"type", "run"},
      {"cell", adapter},
      {"dir", folder_ / "cells" / adapter},
      {"adapter", adapter},
      {"paths", {{"engine", folder_ / "tree"}, {"library", nullptr}}},
      {"probe_dir", folder_ / "probe"},
      {"probe", {{"name", folder_.filename()}}},
      {"limits", {{"timeout_s", 60}, {"memory_mib", 150}, {"output_mib", 4}, {"processes", 20}}}};
}

void WorkerUnderTest::Send(const Json& message) {
  const std::string line = ToLine(message) + "\n";
  HARNESS_CHECK(WriteAll(to_.get(), line));
  if (message.value("type", "") == "run") ++open_cells_;
}

Json WorkerUnderTest::Read() {
  size_t newline = 0;
  while ((newline = buffer_.find('\n')) == std::string::npos) {
    char piece[4096];
    const ssize_t n = ::read(from_.get(), piece, sizeof piece);
    if (n <= 0) return nullptr;
    buffer_.append(piece, static_cast<size_t>(n));
  }
  const Json message = Json::parse(buffer_.substr(0, newline));
  buffer_.erase(0, newline + 1);
  return message;
}

Json WorkerUnderTest::RunRequest(const Json& request) {
  Send(request);
  return WaitForAll()[request["cell"].get<std::string>()];
}

std::map<std::string, Json> WorkerUnderTest::WaitForAll() {
  std::map<std::string, Json> observations;
  while (open_cells_ > 0) {
    const Json message = Read();
    if (message.is_null()) break;
    if (message["type"] != "finished") continue;
    --open_cells_;
    observations[message["cell"].get<std::string>()] = Stable(message["observation"]);
  }
  return observations;
}

int WorkerUnderTest::Finish() {
  to_.Close();
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return status;
}

Json Stable(Json observation) {
  observation.erase("usage");
  observation.erase("versions");
  for (Json& stage : observation["stages"]) {
    stage.erase("rss_mib");
    if (stage.contains("seconds")) stage["seconds"] = "some";
  }
  return observation;
}

}  // namespace bkm
