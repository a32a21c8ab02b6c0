// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/subprocess.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// The number of entries in /proc/self/fd, including the descriptor that reads the folder.
int CountOpenDescriptors() {
  return static_cast<int>(
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

// While it lives, this process can open `room` more descriptors.
class RoomForDescriptors {
 public:
  explicit RoomForDescriptors(int room) {
    std::vector<Descriptor> taken;
    for (int i = 0; i <= room; ++i) taken.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit lowered = {static_cast<rlim_t>(taken.back().get()), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &lowered);
  }
  ~RoomForDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_ = {};
};

TEST(SubprocessTest, CollectsOutputAndExitCode) {
  const ProcessResult result =
      *RunCommand({.argv = {"sh", "-c", "cat; echo oops >&2; exit 3"}, .input = "hello"});
  EXPECT_EQ(result.out, "hello");
  EXPECT_EQ(result.err, "oops\n");
  EXPECT_EQ(result.exit_code, 3);
}

TEST(SubprocessTest, InputAndOutputMayBothExceedAPipe) {
  const std::string input(4 << 20, 'x');
  EXPECT_EQ(*RunForOutput({.argv = {"cat"}, .input = input, .timeout = std::chrono::seconds(20)}),
            input);
}

TEST(SubprocessTest, ProgramThatIgnoresItsInputDoesNotKillUs) {
  const std::string much(4 << 20, 'x');
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(RunCommand({.argv = {"sh", "-c", "exit 3"}, .input = much})->exit_code, 3);
}

TEST(SubprocessTest, EnvironmentIsSetAndUnset) {
  ::setenv("BKM_TEST_GONE", "1", 1);
  EXPECT_EQ(*RunForOutput({.argv = {"sh", "-c", "echo ${BKM_TEST_GONE-none} $BKM_TEST_NEW"},
                           .set_env = {{"BKM_TEST_NEW", "two"}},
                           .unset_env = {"BKM_TEST_GONE"}}),
            "none two\n");
}

TEST(SubprocessTest, ExactEnvironmentHoldsNothingElse) {
  ::setenv("BKM_TEST_SECRET", "1", 1);
  EXPECT_EQ(*RunForOutput({.argv = {"/usr/bin/env"}, .set_env = {{"A", "b"}}, .exact_env = true}),
            "A=b\n");
}

TEST(SubprocessTest, MissingProgramIsNotFound) {
  EXPECT_EQ(RunCommand({.argv = {"bkm-no-such-program"}}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(SubprocessTest, RunThatLacksDescriptorsFailsAndLeaksNone) {
  const int before = CountOpenDescriptors();
  for (int room = 0; room < 6; ++room) {  // RunCommand needs three pipes
    absl::Status status;
    {
      const RoomForDescriptors limited(room);
      status = RunCommand({.argv = {"true"}}).status();
    }
    EXPECT_EQ(status.message(), "cannot make a pipe: Too many open files") << room;
    EXPECT_EQ(CountOpenDescriptors(), before) << room;
  }
}

TEST(SubprocessTest, PipedProcessThatLacksDescriptorsFailsAndLeaksNone) {
  const fs::path log = fs::path(::testing::TempDir()) / "stderr";
  const int before = CountOpenDescriptors();
  for (int room = 0; room < 5; ++room) {  // StartPiped needs the file and two pipes
    absl::Status status;
    {
      const RoomForDescriptors limited(room);
      status = StartPiped({.argv = {"true"}}, log).status();
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << room;
    EXPECT_EQ(CountOpenDescriptors(), before) << room;
  }
}

TEST(SubprocessTest, MissingProgramLeaksNoDescriptor) {
  const int before = CountOpenDescriptors();
  EXPECT_FALSE(RunCommand({.argv = {"bkm-no-such-program"}}).ok());
  EXPECT_FALSE(StartPiped({.argv = {"bkm-no-such-program"}}, "/dev/null").ok());
  EXPECT_EQ(CountOpenDescriptors(), before);
}

TEST(SubprocessTest, PipedProcessClosesItsPipesWhenItIsDropped) {
  const int before = CountOpenDescriptors();
  pid_t pid = -1;
  {
    const PipedProcess process = *StartPiped({.argv = {"cat"}}, "");
    pid = process.pid;
    EXPECT_EQ(CountOpenDescriptors(), before + 2);
  }
  EXPECT_EQ(CountOpenDescriptors(), before);
  int status = -1;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0) << "cat ends once its input is closed";
}

TEST(SubprocessTest, TimeoutEndsTheWholeGroup) {
  const ProcessResult result = *RunCommand(
      {.argv = {"sh", "-c", "sleep 60 & sleep 60"}, .timeout = std::chrono::seconds(1)});
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.exit_code, 128 + 9);
}

// Whether the process still runs. A process that ended and was not reaped does not.
bool Runs(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(stat, line);
  return stat && line.substr(line.rfind(')') + 2, 1) != "Z";
}

bool EndsSoon(pid_t pid) {
  for (int i = 0; i < 500; ++i) {
    if (!Runs(pid)) return true;
    ::usleep(10000);
  }
  return false;
}

// The command that runs kFamily and writes its pids to `file`.
Command FamilyCommand(const fs::path& file);

// Waits until the file holds so many pids.
std::vector<pid_t> ReadPids(const fs::path& file, size_t count) {
  std::vector<pid_t> pids;
  for (int i = 0; i < 1000 && pids.size() < count; ++i, ::usleep(10000)) {
    pids.clear();
    std::ifstream in(file);
    for (pid_t pid = 0; in >> pid;) pids.push_back(pid);
  }
  return pids;
}

// Runs `start(command)` in a process, kills that with SIGKILL once all of its family run, and
// expects that none of them stays.
template <typename F>
void ExpectFamilyDiesWithItsRunner(F start) {
  const fs::path file = fs::path(::testing::TempDir()) / "family";
  fs::remove(file);
  const pid_t runner = ::fork();
  if (runner == 0) {
    start(FamilyCommand(file));
    ::sleep(600);
    ::_exit(0);
  }
  const std::vector<pid_t> pids = ReadPids(file, 4);
  ::kill(runner, SIGKILL);
  ::waitpid(runner, nullptr, 0);
  ASSERT_EQ(pids.size(), 4u);
  for (const pid_t pid : pids) EXPECT_TRUE(EndsSoon(pid)) << pid;
}

// A program with a child, a grandchild in a session of its own, and an orphan.
constexpr const char* kFamily =
    "echo $$; sleep 600 & echo $!; setsid sh -c 'echo $$; exec sleep 600' & "
    "(sh -c 'echo $$; exec sleep 600' &); wait; sleep 600";

Command FamilyCommand(const fs::path& file) {
  return {.argv = {"sh", "-c", absl::StrCat("{ ", kFamily, "; } > ", file.string())}};
}

TEST(SubprocessTest, ProgramsAndTheirDescendantsDieWithAKilledRunner) {
  ExpectFamilyDiesWithItsRunner(
      [](const Command& command) { RunCommand(command).status().IgnoreError(); });
}

TEST(SubprocessTest, PipedProgramsDieWithAKilledRunnerEvenIfTheirThreadHasEnded) {
  ExpectFamilyDiesWithItsRunner([](const Command& command) {
    std::thread([&] { (*StartPiped(command, "")).to_child.Release(); }).join();
  });
}

TEST(SubprocessTest, AProgramOutlivesTheThreadThatStartedIt) {
  PipedProcess process;
  std::thread([&] { process = *StartPiped({.argv = {"cat"}}, ""); }).join();
  ::usleep(50000);
  ASSERT_TRUE(WriteAll(process.to_child.get(), "x"));
  process.to_child.Close();
  char c = 0;
  EXPECT_EQ(::read(process.from_child.get(), &c, 1), 1);
  int status = -1;
  EXPECT_EQ(::waitpid(process.pid, &status, 0), process.pid);
  EXPECT_EQ(status, 0);
}

TEST(SubprocessTest, TimeoutEndsDescendantsInOtherSessions) {
  const fs::path file = fs::path(::testing::TempDir()) / "pids";
  Command command = FamilyCommand(file);
  command.timeout = std::chrono::seconds(1);
  EXPECT_TRUE(RunCommand(command)->timed_out);
  const std::vector<pid_t> pids = ReadPids(file, 4);
  ASSERT_EQ(pids.size(), 4u);
  for (const pid_t pid : pids) EXPECT_FALSE(Runs(pid)) << pid;
}

TEST(SubprocessTest, ASignalAndAnEndBySignalPassTheKeeper) {
  PipedProcess process = *StartPiped(
      {.argv = {"sh", "-c", "trap 'exit 7' TERM; echo; while :; do sleep 0.01; done"}}, "");
  char c = 0;
  ASSERT_EQ(::read(process.from_child.get(), &c, 1), 1);
  ::kill(process.pid, SIGTERM);
  int status = -1;
  ASSERT_EQ(::waitpid(process.pid, &status, 0), process.pid);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(RunCommand({.argv = {"sh", "-c", "kill -SEGV $$"}})->exit_code, 128 + SIGSEGV);
}

TEST(SubprocessTest, AKilledKeeperOrProgramLeavesNothingAndKeepsNobodyWaiting) {
  const fs::path file = fs::path(::testing::TempDir()) / "orphan";
  for (const char* killed : {"$PPID", "$$"}) {
    fs::remove(file);
    // The child of the program holds its stdout, longer than the limit of the test.
    const ProcessResult result =
        *RunCommand({.argv = {"sh", "-c",
                              absl::StrCat("sleep 100000 & echo $! > ", file.string(),
                                           "; echo out; kill -KILL ", killed, "; wait")}});
    EXPECT_EQ(result.exit_code, 128 + SIGKILL);
    EXPECT_EQ(result.out, "out\n");
    const std::vector<pid_t> pids = ReadPids(file, 1);
    ASSERT_EQ(pids.size(), 1u);
    EXPECT_FALSE(Runs(pids[0])) << killed;
  }
}

TEST(SubprocessTest, WhatAProgramLeavesRunningKeepsNobodyWaiting) {
  // Longer than the limit of the test.
  const ProcessResult result = *RunCommand({.argv = {"sh", "-c", "sleep 1000 & echo out"}});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "out\n");
}

// A program that adds a line to `runs` and kills itself with `signal`, until there are `lines`.
Command KillsItself(const fs::path& runs, const std::string& signal, int lines) {
  fs::remove(runs);
  return {.argv = {"sh", "-c",
                   absl::StrCat("echo >> ", runs.string(), "; [ $(wc -l < ", runs.string(),
                                ") -ge ", lines, " ] || kill -", signal, " $$; echo done")}};
}

TEST(SubprocessTest, ACommandThatMayRunAgainDoesSoWhenItIsKilled) {
  const fs::path runs = fs::path(::testing::TempDir()) / "runs-of-a-killed-command";
  Command command = KillsItself(runs, "KILL", 3);
  EXPECT_EQ(RunCommand(command)->exit_code, 128 + SIGKILL) << "it may not run again";
  command = KillsItself(runs, "KILL", 3);
  command.may_run_again = true;
  EXPECT_EQ(*RunForOutput(command), "done\n");
  command = KillsItself(runs, "KILL", 4);
  command.may_run_again = true;
  EXPECT_EQ(RunCommand(command).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(fs::file_size(runs), 3u);
  command = KillsItself(runs, "SEGV", 2);
  command.may_run_again = true;
  EXPECT_EQ(RunCommand(command)->exit_code, 128 + SIGSEGV) << "not killed from outside";
}

TEST(SubprocessTest, WhatAPipedProgramLeavesBehindEndsWithIt) {
  PipedProcess process =
      *StartPiped({.argv = {"sh", "-c", "setsid sleep 600 >/dev/null & echo $!; exit 0"}}, "");
  std::string text;
  for (char c = 0; ::read(process.from_child.get(), &c, 1) == 1 && c != '\n';) text += c;
  int status = -1;
  ASSERT_EQ(::waitpid(process.pid, &status, 0), process.pid);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(Runs(std::stoi(text)));
}

TEST(SubprocessTest, ErrorMessageEndsWithTheLastLineOfStderr) {
  EXPECT_EQ(RunForOutput({.argv = {"sh", "-c", "echo first >&2; echo last >&2; exit 1"}})
                .status()
                .message(),
            "sh -c echo first >&2; echo last >&2; exit 1 ended with 1: last");
}

}  // namespace
}  // namespace bkm
