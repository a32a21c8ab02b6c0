// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/store/file_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FileLockTest : public ::testing::Test {
 protected:
  const fs::path path_ = *CreateTempDirectory(::testing::TempDir(), "lock-") / "lock";
};

TEST_F(FileLockTest, ASecondHolderIsToldWhoHoldsTheLock) {
  const absl::StatusOr<FileLock> first = FileLock::AcquireAlone(path_, "the run");
  ASSERT_EQ(first.status(), absl::OkStatus());
  const absl::Status second = FileLock::AcquireAlone(path_, "the run").status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.message()),
              HasSubstr(absl::StrCat("the run is in use by process ", ::getpid(), " on ")));
}

TEST_F(FileLockTest, AReleasedLockIsFreeAlthoughAProgramStillRuns) {
  PipedProcess program;
  {
    const absl::StatusOr<FileLock> lock = FileLock::AcquireAlone(path_, "the run");
    ASSERT_EQ(lock.status(), absl::OkStatus());
    program = *StartPiped({.argv = {"cat"}}, "");
  }
  EXPECT_EQ(FileLock::AcquireAlone(path_, "the run").status(), absl::OkStatus());
  program.to_child.Close();
  ::waitpid(program.pid, nullptr, 0);
}

TEST_F(FileLockTest, TheLockOfAKilledProcessIsFreeOnceItsProgramsHaveEnded) {
  const fs::path started = path_.parent_path() / "started";
  const pid_t holder = ::fork();
  if (holder == 0) {
    const absl::StatusOr<FileLock> lock = FileLock::AcquireAlone(path_, "the run");
    RunCommand({.argv = {"sh", "-c", absl::StrCat("echo $$ > ", started.string(), "; sleep 600")}})
        .status()
        .IgnoreError();
    ::_exit(0);
  }
  pid_t program = 0;
  for (int i = 0; i < 500 && program == 0; ++i, ::usleep(10000))
    program = std::atoi(ReadFile(started).value_or("").c_str());
  ASSERT_GT(program, 0);
  EXPECT_FALSE(FileLock::AcquireAlone(path_, "the run").ok());
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);

  const absl::StatusOr<FileLock> lock = FileLock::AcquireAlone(path_, "the run");

  EXPECT_EQ(lock.status(), absl::OkStatus());
  EXPECT_NE(::kill(program, 0), 0) << "the program still ran when the lock was free";
}

}  // namespace
}  // namespace bkm
