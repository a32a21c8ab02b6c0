// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// The worker as the runner sees it: messages in and out, real processes, the system's Python.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/cell/control_groups.h"
#include "harness/cell/worker_under_test.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const Json kCompleted = {{"kind", "completed"}};

// How many processes of this machine have `word` in their command line.
int CountProcesses(const std::string& word) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const absl::StatusOr<std::string> line = ReadFile(entry.path() / "cmdline");
    if (line.ok() && line->find(word) != std::string::npos) ++count;
  }
  return count;
}

// Waits up to ten seconds for `condition`.
template <typename F>
bool Eventually(F condition) {
  for (int i = 0; i < 200; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

// The names of the files below `folder` with this prefix.
std::set<std::string> FilesOf(const fs::path& folder, const std::string& begin) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (absl::StartsWith(name, begin)) names.insert(name);
  }
  return names;
}

TEST(CellWorkerTest, SaysWhatItIsWhenItIsReady) {
  WorkerUnderTest worker;

  EXPECT_EQ(worker.ready()["type"], "ready");
  EXPECT_THAT(worker.ready()["python"].get<std::string>(), testing::StartsWith("3."));
  EXPECT_TRUE(worker.ready()["versions"].is_object());
  EXPECT_EQ(worker.ready()["preload_errors"], Json::object());
  EXPECT_EQ(worker.Finish(), 0);
}

TEST(CellWorkerTest, ACompletedCellHasItsFacts) {
  WorkerUnderTest worker;

  Json expected = Json::parse(R"({
    "schema": 1, "ending": {"kind": "completed"},
    "stages": [{"stage": "import", "seconds": "some"}, {"stage": "construct", "seconds": "some"}],
    "backend": {"configured": "flex", "ops": ["a"]}, "shims": [],
    "steps": [{"loss": 1.5}, {"loss": 1.25}]})");
  expected["sandbox"] = worker.ready()["sandbox"]["protections"];
  EXPECT_EQ(worker.Run("completes"), expected);
  EXPECT_EQ(*ReadFile(worker.folder() / "cells/completes/stdout"), "hello from the cell\n");
}

TEST(CellWorkerTest, EveryEndingIsToldFromTheOthers) {
  WorkerUnderTest worker(2);
  for (const char* adapter :
       {"completes", "says_exception", "raises", "raises_unprintable", "exits_at_once",
        "exits_politely", "forgets_to_finish", "segfaults", "kills_itself", "eats_memory",
        "prints_forever", "fills_folder", "forks_forever"}) {
    worker.Send(worker.Request(adapter));
  }
  Json endings;
  for (auto& [cell, observation] : worker.WaitForAll()) {
    observation["ending"].erase("message");
    endings[cell] = observation["ending"];
  }

  EXPECT_EQ(endings, Json::parse(R"({
    "completes": {"kind": "completed"},
    "says_exception": {"kind": "raised"},
    "raises": {"kind": "raised"},
    "raises_unprintable": {"kind": "raised"},
    "exits_at_once": {"kind": "exited", "code": 3},
    "exits_politely": {"kind": "exited", "code": 4},
    "forgets_to_finish": {"kind": "exited", "code": 0},
    "segfaults": {"kind": "signalled", "signal": 11},
    "kills_itself": {"kind": "signalled", "signal": 9},
    "eats_memory": {"kind": "limit", "limit": "memory"},
    "prints_forever": {"kind": "limit", "limit": "output"},
    "fills_folder": {"kind": "limit", "limit": "output"},
    "forks_forever": {"kind": "limit", "limit": "processes"}})"));
}

TEST(CellWorkerTest, LimitsCoverEverythingThatACellMakes) {
  WorkerUnderTest worker(2);
  for (const char* adapter : {"fills_unlinked_file", "makes_many_files", "nests_folders",
                              "fills_evidence", "opens_many_files", "makes_unlinked_files"}) {
    worker.Send(worker.Request(adapter));
  }
  Json endings;
  for (auto& [cell, observation] : worker.WaitForAll()) {
    observation["ending"].erase("message");
    endings[cell] = observation["ending"];
  }

  EXPECT_EQ(endings, Json::parse(R"({
    "fills_unlinked_file": {"kind": "limit", "limit": "output"},
    "makes_many_files": {"kind": "limit", "limit": "files"},
    "makes_unlinked_files": {"kind": "limit", "limit": "files"},
    "nests_folders": {"kind": "limit", "limit": "files"},
    "fills_evidence": {"kind": "limit", "limit": "output"},
    "opens_many_files": {"kind": "raised"}})"));
  // Nobody could walk through it: not a backup, not Bazel, and not the next run of the cell.
  EXPECT_FALSE(std::filesystem::exists(worker.folder() / "cells/nests_folders/work"));
}

TEST(CellWorkerTest, ProcessorTimeOfAllProcessesIsLimited) {
  WorkerUnderTest worker;
  Json request = worker.Request("computes_in_children");
  request["limits"]["cpu_s"] = 1;
  Json ending = worker.RunRequest(request)["ending"];
  EXPECT_THAT(ending["message"].get<std::string>(),
              testing::MatchesRegex("computed for .* s of 1 in all threads"));
  ending.erase("message");
  EXPECT_EQ(ending, Json::parse(R"({"kind": "limit", "limit": "cpu"})"));

  request = worker.Request("computes_a_little");
  request["limits"]["cpu_s"] = 1;
  EXPECT_EQ(worker.RunRequest(request)["ending"], kCompleted);
}

TEST(CellWorkerTest, ShortProcessesCannotHideTheirProcessorTime) {
  const std::vector<GroupParent> parents = FindGroupParents(
      ReadFile("/proc/self/mountinfo").value_or(""), ReadFile("/proc/self/cgroup").value_or(""));
  if (!CellGroups(parents, std::to_string(::getpid()) + "-test", {}).CpuAccount().valid())
    GTEST_SKIP() << "this machine lets us create no control group that counts processor time";
  WorkerUnderTest worker;
  Json request = worker.Request("computes_in_short_processes");
  request["limits"]["cpu_s"] = 1;
  EXPECT_EQ(worker.RunRequest(request)["ending"]["limit"], "cpu");
}

TEST(CellWorkerTest, ASubjectCannotPassItsEndOffAsTheMachines) {
  WorkerUnderTest worker;
  Json killed = worker.Run("kills_itself_by_a_timer")["ending"];
  killed.erase("message");
  EXPECT_EQ(killed, Json::parse(R"({"kind": "signalled", "signal": 9})"));
  EXPECT_EQ(worker.Run("ends_as_if_out_of_time")["ending"],
            Json::parse(R"({"kind": "signalled", "signal": 24})"));
}

TEST(CellWorkerTest, ACellThatHangsIsEndedInTimeAndKeepsWhatWasSeen) {
  WorkerUnderTest worker;
  Json request = worker.Request("sleeps");
  request["limits"]["timeout_s"] = 0.5;

  const auto start = std::chrono::steady_clock::now();
  const Json observation = worker.RunRequest(request);
  const auto took = std::chrono::steady_clock::now() - start;

  EXPECT_EQ(observation["ending"],
            Json({{"kind", "timed-out"}, {"message", "still running after 0.5 s"}}));
  EXPECT_EQ(observation["stages"], Json::parse(R"([{"stage": "import"}])"));
  EXPECT_GE(took, std::chrono::milliseconds(500));
}

TEST(CellWorkerTest, HostileNeighboursHarmNobody) {
  WorkerUnderTest worker(3);
  for (const char* hostile : {"segfaults", "eats_memory", "forks_forever", "kills_everyone"}) {
    worker.Send(worker.Request(hostile));
    Json good = worker.Request("completes");
    good["cell"] = std::string("beside ") + hostile;
    good["dir"] = worker.folder() / "cells" / (std::string("beside_") + hostile);
    worker.Send(good);
  }
  const auto observations = worker.WaitForAll();

  for (const char* hostile : {"segfaults", "eats_memory", "forks_forever", "kills_everyone"}) {
    const auto beside = observations.find(std::string("beside ") + hostile);
    ASSERT_NE(beside, observations.end()) << hostile;
    EXPECT_EQ(beside->second["ending"], kCompleted) << hostile;
    EXPECT_EQ(beside->second["steps"].size(), 2u) << hostile;
  }
  EXPECT_EQ(worker.Finish(), 0);
}

TEST(CellWorkerTest, PagesThatProcessesShareCountOnce) {
  WorkerUnderTest worker;

  EXPECT_EQ(worker.Run("shares_memory")["ending"], kCompleted);
}

TEST(CellWorkerTest, PrintedOutputIsKeptUpToItsLimit) {
  WorkerUnderTest worker;
  worker.Run("prints_forever");

  EXPECT_EQ(fs::file_size(worker.folder() / "cells/prints_forever/stdout"), 4u << 20);
}

TEST(CellWorkerTest, NothingThatACellStartedOutlivesIt) {
  WorkerUnderTest worker;
  if (!worker.Has("pid")) GTEST_SKIP() << "no process namespace here";
  const std::string name = worker.folder().filename();

  EXPECT_EQ(worker.Run("leaves_daemon")["ending"], kCompleted);
  EXPECT_EQ(CountProcesses(name + std::string(1, '\0') + "3600"), 0);
}

TEST(CellWorkerTest, TheCellIsNoInitAndMeetsNobody) {
  WorkerUnderTest worker;
  if (!worker.Has("pid") || !worker.Has("mount")) GTEST_SKIP() << "no namespaces here";

  EXPECT_EQ(worker.Run("kills_everyone")["found"], "nobody");
  const Json seen = worker.Run("reports_surroundings")["surroundings"];
  EXPECT_GT(seen["pid"], 1);
  EXPECT_EQ(seen["proc_self"], std::to_string(seen["pid"].get<int>()));
}

TEST(CellWorkerTest, TheMachineIsReadOnlyExceptTheCellsOwnFolders) {
  WorkerUnderTest worker;
  if (!worker.Has("mount")) GTEST_SKIP() << "no mount namespace here";

  EXPECT_EQ(worker.Run("writes_where_it_may")["ending"], kCompleted);
  EXPECT_TRUE(fs::exists(worker.folder() / "cells/writes_where_it_may/tensors/x"));
  EXPECT_FALSE(fs::exists("/dev/shm/x"));
  for (const char* adapter :
       {"deletes_sources", "edits_sources", "writes_environment", "writes_beside_work"}) {
    const Json observation = worker.Run(adapter);
    EXPECT_EQ(observation["ending"], Json({{"kind", "raised"}})) << adapter;
    // Files of root are closed to the cell's user, whether or not their mount is read-only.
    EXPECT_THAT(observation["exception"]["message"].get<std::string>(),
                testing::AnyOf(HasSubstr("Read-only file system"), HasSubstr("Permission denied")))
        << adapter;
  }
  EXPECT_EQ(worker.Run("remounts")["exception"]["type"], "CalledProcessError");
  EXPECT_EQ(*ReadFile(worker.folder() / "tree/engine.py"), "kept = True\n");
}

TEST(CellWorkerTest, ThereIsNoNetworkButALoopback) {
  WorkerUnderTest worker;
  if (!worker.Has("network")) GTEST_SKIP() << "no network namespace here";

  EXPECT_THAT(worker.Run("opens_socket")["exception"]["message"].get<std::string>(),
              HasSubstr("Network is unreachable"));
  EXPECT_EQ(worker.Run("talks_to_itself")["heard"], "hi");
}

TEST(CellWorkerTest, ACellHasItsOwnFoldersAndNothingOfTheUser) {
  WorkerUnderTest worker;
  const Json seen = worker.Run("reports_surroundings")["surroundings"];
  const fs::path work = worker.folder() / "cells/reports_surroundings/work";

  EXPECT_EQ(seen["cwd"], work.string());
  EXPECT_EQ(seen["tempdir"], (work / "tmp").string());
  EXPECT_EQ(seen["environment"]["HOME"], (work / "home").string());
  EXPECT_EQ(seen["environment"]["TMPDIR"], (work / "tmp").string());
  EXPECT_EQ(seen["environment"]["HF_HUB_OFFLINE"], "1");
  EXPECT_FALSE(seen["environment"].contains("BKM_TEST_SURPRISE"));
  EXPECT_EQ(seen["argv"], Json::parse(R"(["cell"])"));
  EXPECT_EQ(seen["probe"], Json::parse(R"(["probe.json"])"));
}

TEST(CellWorkerTest, AFreshFolderEachTime) {
  WorkerUnderTest worker;
  if (!worker.Has("mount")) GTEST_SKIP() << "it would write to the real /tmp";
  worker.Run("writes_where_it_may");
  const Json again = worker.Run("writes_where_it_may");

  EXPECT_EQ(again["ending"], kCompleted);
  Json request = worker.Request("completes");
  request["dir"] = worker.folder() / "cells/writes_where_it_may";
  worker.RunRequest(request);
  EXPECT_FALSE(fs::exists(worker.folder() / "cells/writes_where_it_may/work/here"));
}

TEST(CellWorkerTest, AForkedChildThatRunsOnIsNotHeard) {
  WorkerUnderTest worker;
  const Json observation = worker.Run("child_runs_on");

  EXPECT_EQ(observation["ending"], kCompleted);
  EXPECT_FALSE(observation.contains("impostor"));
}

TEST(CellWorkerTest, GarbageOnTheEventPipeIsNoted) {
  WorkerUnderTest worker;
  const Json observation = worker.Run("babbles");

  EXPECT_EQ(observation["ending"], kCompleted);
  EXPECT_EQ(observation["ignored_events"], 1);
}

TEST(CellWorkerTest, ACellCannotClaimThatItDidNotStart) {
  WorkerUnderTest worker;
  const Json observation = worker.Run("claims_not_to_have_started");

  EXPECT_EQ(observation["ending"], Json({{"kind", "exited"}, {"code", 7}}));
  EXPECT_EQ(observation["ignored_events"], 2);
  EXPECT_NE(observation["sandbox"], Json({"none"}));
}

TEST(CellWorkerTest, ACellThatReportsTooMuchIsEndedAndItsNeighbourIsNot) {
  WorkerUnderTest worker(3);
  for (const char* adapter : {"reports_deeply", "reports_without_end", "completes"})
    worker.Send(worker.Request(adapter));
  auto observations = worker.WaitForAll();

  for (const char* adapter : {"reports_deeply", "reports_without_end"}) {
    Json ending = observations[adapter]["ending"];
    ending.erase("message");
    EXPECT_EQ(ending, Json({{"kind", "limit"}, {"limit", "events"}})) << adapter;
    EXPECT_EQ(observations[adapter]["stages"].size(), 2u) << "what was reported before is kept";
  }
  EXPECT_EQ(observations["completes"]["ending"], kCompleted);
  EXPECT_EQ(worker.Finish(), 0);
}

TEST(CellWorkerTest, JobsBoundsTheCellsInFlight) {
  WorkerUnderTest worker(2);
  for (const char* name : {"a", "b", "c"}) {
    Json request = worker.Request("sleeps");
    request["cell"] = name;
    request["dir"] = worker.folder() / "cells" / name;
    worker.Send(request);
  }

  EXPECT_EQ(worker.Read()["cell"], "a");
  EXPECT_EQ(worker.Read()["cell"], "b");
  worker.Send({{"type", "cancel"}, {"cell", "a"}});
  const Json finished = worker.Read();
  EXPECT_EQ(finished["type"], "finished");
  EXPECT_EQ(finished["cell"], "a");
  EXPECT_EQ(finished["observation"]["ending"], Json({{"kind", "cancelled"}}));
  const Json started = worker.Read();
  EXPECT_EQ(started["type"], "started");
  EXPECT_EQ(started["cell"], "c");
}

TEST(CellWorkerTest, ACellThatWaitsCanBeCancelled) {
  WorkerUnderTest worker(1);
  Json waiting = worker.Request("completes");
  worker.Send(worker.Request("sleeps"));
  worker.Send(waiting);
  worker.Read();  // sleeps has started
  worker.Send({{"type", "cancel"}, {"cell", "completes"}});
  const Json finished = worker.Read();

  EXPECT_EQ(finished["cell"], "completes");
  EXPECT_EQ(finished["observation"]["ending"], Json({{"kind", "cancelled"}}));
}

TEST(CellWorkerTest, TheEndOfTheInputEndsTheCells) {
  WorkerUnderTest worker(1);
  worker.Send(worker.Request("sleeps"));
  worker.Read();  // it has started

  EXPECT_EQ(worker.Finish(), 0);
}

TEST(CellWorkerTest, TermEndsTheCellsAndTellsOfThem) {
  WorkerUnderTest worker(1);
  worker.Send(worker.Request("sleeps"));
  worker.Read();  // it has started
  ::kill(worker.pid(), SIGTERM);
  const Json finished = worker.Read();

  EXPECT_EQ(finished["type"], "finished");
  EXPECT_EQ(finished["observation"]["ending"], Json({{"kind", "cancelled"}}));
  EXPECT_EQ(worker.Read(), nullptr);
  EXPECT_EQ(worker.Finish(), 0);
}

TEST(CellWorkerTest, CellsDieWithTheirWorker) {
  WorkerUnderTest worker(1);
  worker.Send(worker.Request("sleeps"));
  const pid_t cell = worker.Read()["pid"];
  ASSERT_EQ(::kill(cell, 0), 0);
  ::kill(worker.pid(), SIGKILL);

  EXPECT_TRUE(Eventually([&] { return ::kill(cell, 0) != 0; }));
}

TEST(CellWorkerTest, ARequestThatCannotBeRunIsAnsweredAndTheNextOneRuns) {
  WorkerUnderTest worker;
  Json relative = worker.Request("completes");
  relative["dir"] = "not/absolute";
  EXPECT_EQ(worker.RunRequest(relative)["ending"],
            Json({{"kind", "fork-failed"},
                  {"message", "request: $.dir must be an absolute path, not 'not/absolute'"}}));

  Json below_a_file = worker.Request("completes");
  below_a_file["dir"] = worker.folder() / "tree/engine.py/cell";
  EXPECT_EQ(worker.RunRequest(below_a_file)["ending"]["kind"], "fork-failed");

  EXPECT_EQ(worker.Run("completes")["ending"], kCompleted);
}

TEST(CellWorkerTest, OnceInAFreshProcessSeesTheSame) {
  WorkerUnderTest worker;
  for (const char* adapter : {"completes", "raises", "segfaults", "exits_at_once"}) {
    const Json request = worker.Request(adapter);
    const Json served = worker.RunRequest(request);
    const fs::path file = worker.folder() / "request.json";
    ASSERT_TRUE(WriteFile(file, ToText(request)).ok());
    Command command{.argv = WorkerUnderTest::Arguments("once")};
    command.argv.insert(command.argv.end(), {"--request", file});

    const absl::StatusOr<ProcessResult> result = RunCommand(command);

    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->exit_code, 0);
    const absl::StatusOr<Json> finished = ParseJson(result->out, "once");
    ASSERT_TRUE(finished.ok()) << finished.status();
    EXPECT_EQ((*finished)["type"], "finished");
    EXPECT_EQ((*finished)["cell"], adapter);
    EXPECT_EQ(Stable((*finished)["observation"]), served);
  }
}

// The worker's only message when it is started with `arguments`.
Json FatalOf(std::vector<std::string> arguments) {
  Command command;
  command.argv = std::move(arguments);
  const absl::StatusOr<ProcessResult> result = RunCommand(command);
  if (!result.ok() || result->exit_code != 2) return nullptr;
  return *ParseJson(result->out, "worker");
}

TEST(CellWorkerTest, AMissingEnvironmentIsFatalAndSaysWhatToDo) {
  std::vector<std::string> arguments = WorkerUnderTest::Arguments("serve");
  arguments[3] = "/nowhere/bin/python";

  EXPECT_EQ(FatalOf(arguments),
            Json({{"type", "fatal"},
                  {"message",
                   "--python /nowhere/bin/python does not run (cannot start /nowhere/bin/python: "
                   "no such program or folder): create the environment again"}}));
}

TEST(CellWorkerTest, MissingAdaptersAreFatal) {
  std::vector<std::string> arguments = WorkerUnderTest::Arguments("serve");
  arguments[5] = "/nowhere";

  EXPECT_EQ(FatalOf(arguments)["message"],
            "cannot import bkm_cell.cell from --python-code /nowhere: ModuleNotFoundError: No "
            "module named 'bkm_cell'");
}

// The ready message of a worker that preloads this list; the worker has ended.
Json PreloadErrorsOf(const char* list, const std::vector<std::string>& more = {}) {
  const fs::path file = fs::path(std::getenv("TEST_TMPDIR")) / "preload";
  EXPECT_TRUE(WriteFile(file, list).ok());
  Command command;
  command.argv = WorkerUnderTest::Arguments("serve");
  command.argv.insert(command.argv.end(), {"--preload", file});
  command.argv.insert(command.argv.end(), more.begin(), more.end());
  const absl::StatusOr<ProcessResult> result = RunCommand(command);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return nullptr;
  EXPECT_EQ(result->exit_code, 0);
  return (*ParseJson(result->out, "worker"))["preload_errors"];
}

TEST(CellWorkerTest, AModuleThatCannotBePreloadedIsReported) {
  EXPECT_EQ(PreloadErrorsOf("# a comment\njson\n\nno_such_module\n"),
            Json({{"no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"}}));
}

TEST(CellWorkerTest, PreloadingLeavesNoTemporaryFolders) {
  const auto left = [] {
    std::set<fs::path> folders;
    for (const fs::directory_entry& entry : fs::directory_iterator("/tmp")) {
      if (absl::EndsWith(entry.path().string(), "-bkm-preloaded")) folders.insert(entry.path());
    }
    return folders;
  };
  const std::set<fs::path> before = left();
  EXPECT_EQ(PreloadErrorsOf("makes_a_folder\n"), Json::object());
  EXPECT_EQ(left(), before);
}

TEST(CellWorkerTest, WhatIsPreloadedIsCompiledIntoTheFolderThatIsNamed) {
  const fs::path bytecode = *CreateTempDirectory(std::getenv("TEST_TMPDIR"), "bytecode");
  const fs::path code = WorkerUnderTest::Arguments("serve")[5];

  EXPECT_EQ(PreloadErrorsOf("makes_a_folder\n", {"--bytecode", bytecode}), Json::object());

  EXPECT_THAT(FilesOf(bytecode, "makes_a_folder.cpython-"), testing::SizeIs(1));
  EXPECT_THAT(FilesOf(bytecode, "cell.cpython-"), testing::SizeIs(1));
  EXPECT_THAT(FilesOf(code, "makes_a_folder.cpython-"), testing::IsEmpty());
}

TEST(CellWorkerTest, ACellHoldsNothingOfAnEarlierCellsRequest) {
  WorkerUnderTest worker;
  const auto holds_it = [&](const std::string& own) {
    Json request = worker.Request("searches_memory");
    request["marker"] = "yenruoj-eht-fo-terces";  // the other way round
    request["own"] = own;
    return worker.RunRequest(request)["found"];
  };
  EXPECT_EQ(holds_it("secret-of-the-journey"), true) << "its own request";
  EXPECT_EQ(holds_it("nothing"), false);
}

TEST(CellWorkerTest, APreloadedPackageWritesNoBytecode) {
  const fs::path bytecode = *CreateTempDirectory(std::getenv("TEST_TMPDIR"), "bytecode");
  fs::permissions(bytecode, fs::perms::all);
  EXPECT_EQ(PreloadErrorsOf("forges_bytecode\n", {"--bytecode", bytecode}), Json::object());
  EXPECT_THAT(FilesOf(bytecode, "forged"), testing::IsEmpty());
  EXPECT_THAT(FilesOf(bytecode, "forges_bytecode.cpython-"), testing::SizeIs(1));
  EXPECT_FALSE(fs::exists(bytecode / "etc")) << "only what workers are shown is compiled";
}

}  // namespace
}  // namespace bkm
