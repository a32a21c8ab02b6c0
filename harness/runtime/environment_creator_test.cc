// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runtime/environment_creator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/base/subprocess.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class EnvironmentCreatorTest : public ::testing::Test {
 protected:
  EnvironmentCreatorTest() : root_(*CreateTempDirectory(::testing::TempDir(), "environment-")) {
    lock_.runtime = "cpu";
    lock_.python = "3.11";
    lock_.packages = {{"numpy", "1.0", {"aa"}}};
  }
  EnvironmentCreator Creator(const std::string& install) {
    EXPECT_TRUE(WriteFile(root_ / "uv",
                          "#!/bin/sh\nif [ $1 = venv ]; then exec /usr/bin/python3 -I -m venv "
                          "--without-pip $6; fi\ncat > \"$(dirname \"$0\")/input\"\n" +
                              install)
                    .ok());
    fs::permissions(root_ / "uv", fs::perms(0755));
    return EnvironmentCreator(Uv(root_ / "uv"), root_ / "cache", "/usr/bin/python3");
  }

  fs::path root_;
  RuntimeLock lock_;
};

TEST_F(EnvironmentCreatorTest, CreatesOneEnvironmentPerLockKey) {
  const fs::path python = *Creator("exit 0").Create(lock_);
  EXPECT_EQ(python.parent_path().parent_path().parent_path(), root_ / "cache/environments");
  EXPECT_EQ(*ReadFile(root_ / "input"), "numpy==1.0 --hash=sha256:aa\n");
  lock_.runtime = "other";  // the same packages by another policy
  EXPECT_EQ(*Creator("exit 9").Create(lock_), python);
  lock_.packages[0].version = "2.0";
  EXPECT_NE(*Creator("exit 0").Create(lock_), python);
}

TEST_F(EnvironmentCreatorTest, FindsWhatWasCreatedAndCreatesNothing) {
  EXPECT_EQ(Creator("exit 9").Find(lock_), std::nullopt);
  const fs::path python = *Creator("exit 0").Create(lock_);
  EXPECT_EQ(Creator("exit 9").Find(lock_), python);
}

TEST_F(EnvironmentCreatorTest, NothingThatAPackageInstallsRunsWhileItIsCompiled) {
  const std::string mark = "open('" + (root_ / "mark").string() + "', 'w')\n";
  ASSERT_TRUE(WriteFile(root_ / "evil.py", "import os; " + mark).ok());
  const fs::path python = *Creator(
                               "site=$(dirname \"$6\")/../lib/python3.11/site-packages\n"
                               "for name in sitecustomize.py usercustomize.py evil.pth "
                               "py_compile.py struct.py; do\n"
                               "  cp \"$(dirname \"$0\")/evil.py\" \"$site/$name\"\n"
                               "done")
                               .Create(lock_);
  const fs::path site = python.parent_path().parent_path() / "lib/python3.11/site-packages";
  EXPECT_TRUE(fs::exists(site / "evil.pth"));
  EXPECT_TRUE(fs::exists(site / "__pycache__/sitecustomize.cpython-311.pyc"));
  EXPECT_FALSE(fs::exists(root_ / "mark"));
  // The files are such that the environment's own Python obeys them.
  EXPECT_TRUE(RunCommand({.argv = {python, "-c", ""}}).ok());
  EXPECT_TRUE(fs::exists(root_ / "mark"));
}

TEST_F(EnvironmentCreatorTest, FailureLeavesNothingAndGivesAdvice) {
  const absl::Status network =
      Creator("echo 'error: Failed to fetch: https://x/' >&2; exit 2").Create(lock_).status();
  EXPECT_EQ(network.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(network.message()), HasSubstr("check the network"));
  const absl::Status space =
      Creator("echo 'error: No space left on device (os error 28)' >&2; exit 2")
          .Create(lock_)
          .status();
  EXPECT_EQ(space.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(space.message()), HasSubstr("free some space"));
  const absl::Status build =
      Creator("echo '  × Failed to build `antlr4==4.9.3`' >&2; exit 1").Create(lock_).status();
  EXPECT_EQ(build, absl::AbortedError("cannot install the packages of runtime cpu: Failed to build "
                                      "`antlr4==4.9.3`"));
  EXPECT_TRUE(Creator("exit 0").Create(lock_).ok());
}

// uv would take the package for installed that it had begun to write.
TEST_F(EnvironmentCreatorTest, AnInstallationThatWasKilledStartsAgainInAnEmptyFolder) {
  const std::string kills_itself =
      "site=$(dirname \"$6\")/../lib/python3.11/site-packages\n"
      "tries=\"$(dirname \"$0\")/tries\"; echo >> \"$tries\"\n"
      "[ $(wc -l < \"$tries\") -ge ";
  const std::string rest =
      " ] || { touch \"$site/half.py\"; kill -KILL $$; }\n"
      "[ -e \"$site/half.py\" ] || echo 'A = 1' > \"$site/whole.py\"";
  const fs::path python = *Creator(kills_itself + "3" + rest).Create(lock_);
  const fs::path site = python.parent_path().parent_path() / "lib/python3.11/site-packages";
  EXPECT_TRUE(fs::exists(site / "whole.py"));
  EXPECT_FALSE(fs::exists(site / "half.py"));
  fs::remove(root_ / "tries");
  lock_.packages[0].version = "2.0";
  const absl::Status killed = Creator(kills_itself + "9" + rest).Create(lock_).status();
  EXPECT_EQ(killed.code(), absl::StatusCode::kUnavailable) << killed;
  EXPECT_EQ(Creator("exit 9").Find(lock_), std::nullopt);
}

TEST_F(EnvironmentCreatorTest, ExistingRuntimeIsItsInterpreter) {
  lock_.interpreter = "/some/python";
  EXPECT_EQ(*Creator("exit 9").Create(lock_), fs::path("/some/python"));
}

}  // namespace
}  // namespace bkm
