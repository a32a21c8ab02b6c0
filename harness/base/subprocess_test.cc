// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/subprocess.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

TEST(SubprocessTest, CollectsOutputAndExitCode) {
  const ProcessResult result =
      *RunCommand({.argv = {"sh", "-c", "cat; echo oops >&2; exit 3"}, .input = "hello"});
  EXPECT_EQ(result.out, "hello");
  EXPECT_EQ(result.err, "oops\n");
  EXPECT_EQ(result.exit_code, 3);
}

TEST(SubprocessTest, InputAndOutputMayBothBeLargerThanAPipe) {
  const std::string input(4 << 20, 'x');
  EXPECT_EQ(*RunForOutput({.argv = {"cat"}, .input = input, .timeout = std::chrono::seconds(20)}),
            input);
}

TEST(SubprocessTest, ProgramThatDoesNotReadItsInputDoesNotEndUs) {
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

TEST(SubprocessTest, TimeoutEndsTheWholeGroup) {
  const ProcessResult result = *RunCommand(
      {.argv = {"sh", "-c", "sleep 60 & sleep 60"}, .timeout = std::chrono::seconds(1)});
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.exit_code, 128 + 9);
}

TEST(SubprocessTest, FailureEndsWithTheLastLineOfStderr) {
  EXPECT_EQ(RunForOutput({.argv = {"sh", "-c", "echo first >&2; echo last >&2; exit 1"}})
                .status()
                .message(),
            "sh -c echo first >&2; echo last >&2; exit 1 ended with 1: last");
}

}  // namespace
}  // namespace bkm
