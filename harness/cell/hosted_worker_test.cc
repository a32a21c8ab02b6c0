// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Interpreters that load the worker themselves. cell_worker_test_alone and sandbox_test_alone run
// the tests of every worker on them, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/supported_python.h"
#include "harness/cell/worker_under_test.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const Json kFinished = {{"kind", "completed"}};

std::string SystemPython() { return WorkerUnderTest::Arguments("serve")[3]; }

// Observations of cells that end in every way, and the streams that they wrote.
Json ObservationsOf(WorkerUnderTest& worker) {
  Json all;
  for (const char* adapter :
       {"completes", "says_exception", "raises", "raises_unprintable", "exits_at_once",
        "exits_politely", "forgets_to_finish", "segfaults", "kills_itself", "child_runs_on",
        "babbles", "claims_not_to_have_started", "tells_of_its_interpreter"}) {
    all[adapter] = worker.Run(adapter);
    all[adapter]["stdout"] = *ReadFile(worker.folder() / "cells" / adapter / "stdout");
  }
  return all;
}

TEST(HostedWorkerTest, ItsCellsSeeWhatThoseOfAnEmbeddedInterpreterSee) {
  WorkerUnderTest embedded;
  WorkerUnderTest hosted(1, {"--alone"});

  const Json expected = ObservationsOf(embedded);
  const Json seen = ObservationsOf(hosted);

  for (const auto& [adapter, observation] : expected.items())
    EXPECT_EQ(seen[adapter], observation) << adapter;
  EXPECT_EQ(hosted.ready()["versions"], embedded.ready()["versions"]);
  EXPECT_EQ(hosted.ready()["sandbox"]["protections"], embedded.ready()["sandbox"]["protections"]);
}

TEST(HostedWorkerTest, NothingOfTheWorkerReachesACell) {
  WorkerUnderTest embedded;
  WorkerUnderTest hosted(1, {"--alone"});

  const Json expected = embedded.Run("reports_surroundings")["surroundings"];
  const Json seen = hosted.Run("reports_surroundings")["surroundings"];

  for (const char* fact : {"argv", "descriptors", "tmp", "interfaces"})
    EXPECT_EQ(seen[fact], expected[fact]) << fact;
  std::set<std::string> names, expected_names;
  for (const auto& [name, value] : seen["environment"].items()) names.insert(name);
  for (const auto& [name, value] : expected["environment"].items()) expected_names.insert(name);
  EXPECT_EQ(names, expected_names);
}

TEST(HostedWorkerTest, NoCellImportsWhatIsPreloaded) {
  const fs::path list = fs::path(std::getenv("TEST_TMPDIR")) / "preload";
  ASSERT_TRUE(WriteFile(list, "counts_its_imports\nno_such_module\n").ok());
  WorkerUnderTest worker(1, {"--alone", "--preload", list});

  EXPECT_GT(worker.ready()["preload_s"].get<double>(), 0.5);
  EXPECT_EQ(worker.ready()["preload_errors"],
            Json({{"no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"}}));
  const Json first = worker.Run("uses_what_is_preloaded");
  const Json second = worker.Run("uses_what_is_preloaded");
  EXPECT_EQ(first["imported"]["here"], false);
  EXPECT_EQ(second["imported"], first["imported"]);
}

// The interpreters that PATH offers, by the path of the program itself: those of its folders, and
// the versions that shims (pyenv) stand for. Value: what refuses it; empty if nothing does.
std::map<std::string, std::string> InterpretersOfPath() {
  std::vector<fs::path> candidates;
  std::error_code error;
  const char* path = std::getenv("PATH");
  for (const std::string& one :
       std::vector<std::string>(absl::StrSplit(path ? path : "", ':', absl::SkipEmpty()))) {
    const fs::path folder = one;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename();
      absl::string_view minor = name;
      int number = 0;
      if (name == "python3" ||
          (absl::ConsumePrefix(&minor, "python3.") && absl::SimpleAtoi(minor, &number)))
        candidates.push_back(entry.path());
    }
    if (folder.filename() != "shims") continue;
    for (const auto& entry : fs::directory_iterator(folder.parent_path() / "versions", error))
      candidates.push_back(entry.path() / "bin/python3");
  }
  std::map<std::string, std::string> found;
  for (const fs::path& candidate : candidates) {
    const absl::StatusOr<std::string> answer = RunForOutput(
        {.argv = {candidate, "-c",
                  absl::StrCat(kRefusalProgram, "\nprint(sys.executable)\nprint(refusal())")}});
    if (!answer.ok()) continue;
    const std::vector<std::string> lines = absl::StrSplit(*answer, '\n');
    found[fs::canonical(lines[0], error)] = lines.size() > 1 ? lines[1] : "";
  }
  return found;
}

TEST(HostedWorkerTest, EveryInterpreterOfPathIsWarmOrRefusedInOneSentence) {
  const std::map<std::string, std::string> interpreters = InterpretersOfPath();
  ASSERT_FALSE(interpreters.empty());
  std::set<std::string> served;
  for (const auto& [python, refusal] : interpreters) {
    SCOPED_TRACE(python);
    WorkerUnderTest worker(1, {"--alone"}, python);
    if (!refusal.empty()) {
      EXPECT_EQ(
          worker.ready(),
          Json({{"type", "fatal"}, {"message", absl::StrCat("--python ", python, " ", refusal)}}));
      continue;
    }
    ASSERT_EQ(worker.ready()["type"], "ready") << worker.ready();
    served.insert(worker.ready()["python"].get<std::string>());
    EXPECT_EQ(worker.Run("completes")["ending"], kFinished);
    EXPECT_EQ(worker.Run("raises")["ending"], Json({{"kind", "raised"}}));
    EXPECT_EQ(worker.Run("segfaults")["ending"], Json({{"kind", "signalled"}, {"signal", 11}}));
    EXPECT_EQ(worker.Run("child_runs_on")["ending"], kFinished);
    const Json seen = worker.Run("tells_of_its_interpreter")["interpreter"];
    EXPECT_EQ(seen["executable"], python);
    EXPECT_TRUE(absl::StartsWith(
        worker.ready()["python"].get<std::string>(),
        absl::StrCat(seen["version"][0].get<int>(), ".", seen["version"][1].get<int>(), ".")));
    EXPECT_EQ(worker.Finish(), 0);
  }
  std::string all;
  for (const std::string& version : served) absl::StrAppend(&all, version, " ");
  RecordProperty("served", all);
  std::printf("served: %s\n", all.c_str());
}

// What refuses an interpreter that says this of itself.
std::string RefusalOf(const std::string& lie) {
  return *RunForOutput({.argv = {SystemPython(), "-c",
                                 absl::StrCat("import sys, types\n", lie, "\n", kRefusalProgram,
                                              "\nprint(refusal(), end='')")}});
}

TEST(RefusalTest, OldForeignAndSmallInterpretersAreNamed) {
  EXPECT_EQ(RefusalOf(""), "");
  EXPECT_THAT(RefusalOf("sys.version_info = (3, 9, 2)"),
              HasSubstr("is CPython 3.9, and cells need CPython 3.10 or newer"));
  EXPECT_THAT(RefusalOf("sys.implementation = types.SimpleNamespace(name='pypy')"),
              HasSubstr("is pypy, and"));
  EXPECT_THAT(RefusalOf("sys.maxsize = 2**31 - 1"), HasSubstr("is a 32-bit program, and"));
  EXPECT_THAT(RefusalOf("sys.abiflags = 't'"), HasSubstr("is a free-threaded CPython, and"));
}

// The message of a worker that does not start.
std::string FatalOf(const fs::path& python) {
  const WorkerUnderTest worker(1, {"--alone"}, python);
  return worker.ready().is_object() && worker.ready()["type"] == "fatal"
             ? worker.ready()["message"].get<std::string>()
             : "it is not a fatal message: " + worker.ready().dump();
}

TEST(HostedWorkerTest, AProgramThatDoesNotRunHereIsNamed) {
  const fs::path folder = *CreateTempDirectory(std::getenv("TEST_TMPDIR"), "python");
  fs::permissions(folder, fs::perms(0755));
  const fs::path python = folder / "bin/python";
  std::string program = *ReadFile(fs::canonical(SystemPython()));
  program[18] = static_cast<char>(0xb7);  // the machine in the ELF header: aarch64
  ASSERT_TRUE(WriteFile(python, program).ok());
  fs::permissions(python, fs::perms(0755));
  EXPECT_EQ(
      FatalOf(python),
      absl::StrCat("--python ", python.string(), " does not run (cannot start ", python.string(),
                   ": Exec format error): name an interpreter that runs on this machine"));

  ASSERT_TRUE(WriteFile(python, "#!/bin/sh\nexec python3 \"$@\"\n").ok());
  EXPECT_EQ(FatalOf(python),
            absl::StrCat("--python ", python.string(),
                         " does not run (it is a script): name an interpreter that runs on this "
                         "machine"));
}

}  // namespace
}  // namespace bkm
