// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/session/expected_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kLine[] = "attention=flex -> broken  # the rope moved\n";

class FindExpectationsTest : public ::testing::Test {
 protected:
  FindExpectationsTest() : folder_(*CreateTempDirectory(::testing::TempDir(), "matrices-")) {}
  void Write(const char* file, const char* text) {
    ASSERT_TRUE(WriteFile(folder_ / file, text).ok());
  }

  const fs::path folder_;
};

TEST_F(FindExpectationsTest, FileOfTheSameStemBesideTheMatrixFileIsRead) {
  Write("nightly.expect.txt", kLine);
  EXPECT_TRUE(FindExpectations("", folder_ / "nightly.json")->has_value());
}

TEST_F(FindExpectationsTest, TheNameInsideTheMatrixFileDoesNotMatter) {
  Write("renamed.json", R"({"schema": 1, "name": "nightly", "groups": []})");
  Write("nightly.expect.txt", kLine);
  EXPECT_FALSE(FindExpectations("", folder_ / "renamed.json")->has_value());
  Write("renamed.expect.txt", kLine);
  EXPECT_TRUE(FindExpectations("", folder_ / "renamed.json")->has_value());
}

TEST_F(FindExpectationsTest, FileThatTheUserNamesWins) {
  Write("nightly.expect.txt", "not a line of expectations\n");
  Write("other.txt", kLine);
  EXPECT_TRUE(FindExpectations(folder_ / "other.txt", folder_ / "nightly.json")->has_value());
}

TEST_F(FindExpectationsTest, FileThatTheUserNamesMustExist) {
  const auto found = FindExpectations("none.txt", "");
  EXPECT_TRUE(absl::IsNotFound(found.status()));
  EXPECT_THAT(found.status().message(), HasSubstr("--expect none.txt"));
}

TEST_F(FindExpectationsTest, AnAdHocSelectionHasNone) {
  EXPECT_FALSE(FindExpectations("", "")->has_value());
}

}  // namespace
}  // namespace bkm
