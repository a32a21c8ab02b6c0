// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/subprocess.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

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

TEST(SubprocessTest, ErrorMessageEndsWithTheLastLineOfStderr) {
  EXPECT_EQ(RunForOutput({.argv = {"sh", "-c", "echo first >&2; echo last >&2; exit 1"}})
                .status()
                .message(),
            "sh -c echo first >&2; echo last >&2; exit 1 ended with 1: last");
}

}  // namespace
}  // namespace bkm
