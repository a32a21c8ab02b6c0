// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/store/result_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ResultIndexTest : public ::testing::Test {
 protected:
  ResultIndexTest()
      : path_(*CreateTempDirectory(::testing::TempDir(), "index-") / "results.sqlite") {}
  fs::path path_;
};

TEST_F(ResultIndexTest, ResultIsFoundByItsKeyDependenceAndState) {
  ResultIndex index = *ResultIndex::Open(path_);
  ASSERT_TRUE(index.Put("k", "reads a", "a is 1", "one").ok());
  ASSERT_TRUE(index.Put("k", "reads a", "a is 2", "two").ok());
  EXPECT_EQ(*index.Find("k", "reads a", "a is 1"), "one");
  EXPECT_EQ(*index.Find("k", "reads a", "a is 2"), "two");
  EXPECT_EQ(*index.Find("k", "reads a", "a is 3"), std::nullopt);
  EXPECT_EQ(*index.Find("k", "reads b", "a is 1"), std::nullopt);
  EXPECT_EQ(*index.Find("other", "reads a", "a is 1"), std::nullopt);
  ASSERT_TRUE(index.Put("k", "reads a", "a is 1", "again").ok());
  EXPECT_EQ(*index.Find("k", "reads a", "a is 1"), "again");
}

TEST_F(ResultIndexTest, DependencesOfAKeyAreDistinctLatestFirst) {
  ResultIndex index = *ResultIndex::Open(path_);
  ASSERT_TRUE(index.Put("k", "reads a", "1", "one").ok());
  ASSERT_TRUE(index.Put("k", "reads b", "1", "two").ok());
  ASSERT_TRUE(index.Put("k", "reads a", "2", "three").ok());
  ASSERT_TRUE(index.Put("other", "reads c", "2", "four").ok());
  EXPECT_THAT(*index.Dependences("k"), ElementsAre("reads a", "reads b"));
}

TEST_F(ResultIndexTest, RemovedFolderIsForgottenUnderAllKeys) {
  ResultIndex index = *ResultIndex::Open(path_);
  ASSERT_TRUE(index.Put("k", "reads a", "1", "one").ok());
  ASSERT_TRUE(index.Put("other", "reads a", "1", "one").ok());
  ASSERT_TRUE(index.Put("k", "reads a", "2", "two").ok());
  ASSERT_TRUE(index.Remove("one").ok());
  EXPECT_EQ(*index.Find("k", "reads a", "1"), std::nullopt);
  EXPECT_EQ(*index.Find("other", "reads a", "1"), std::nullopt);
  EXPECT_EQ(*index.Find("k", "reads a", "2"), "two");
}

TEST_F(ResultIndexTest, TwoOpenIndexesSeeEachOther) {
  ResultIndex a = *ResultIndex::Open(path_);
  ResultIndex b = *ResultIndex::Open(path_);
  ASSERT_TRUE(a.Put("k", "reads a", "1", "one").ok());
  EXPECT_EQ(*b.Find("k", "reads a", "1"), "one");
}

TEST_F(ResultIndexTest, CorruptFileIsSetAsideAndReportedOnce) {
  ASSERT_TRUE(WriteFile(path_, std::string(8192, 'x')).ok());
  {
    ResultIndex index = *ResultIndex::Open(path_);
    EXPECT_THAT(index.set_aside(), ::testing::HasSubstr("results.sqlite: file is not a database"));
    EXPECT_THAT(index.set_aside(), ::testing::HasSubstr("results.sqlite.damaged-"));
    EXPECT_TRUE(index.Put("k", "reads a", "a is 1", "one").ok());
  }
  EXPECT_EQ(ResultIndex::Open(path_)->set_aside(), "");
}

TEST_F(ResultIndexTest, DatabaseOfAnotherProgramIsDataLossWithAdvice) {
  {
    const Database other = *Database::Open({path_, "", std::chrono::milliseconds(10)});
    ASSERT_TRUE(other.Execute("CREATE TABLE kept(other TEXT)").ok());
  }
  const absl::Status status = ResultIndex::Open(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("(remove this file: it only points at"));
}

TEST_F(ResultIndexTest, IndexOfANewerVersionIsRefused) {
  { ASSERT_TRUE(ResultIndex::Open(path_).ok()); }
  std::string bytes = *ReadFile(path_);
  bytes[63] = 9;  // the last byte of user_version in the SQLite header
  ASSERT_TRUE(WriteFile(path_, bytes).ok());
  EXPECT_THAT(std::string(ResultIndex::Open(path_).status().message()),
              AllOf(HasSubstr("newer bkm (schema 9"), HasSubstr("update bkm")));
}

}  // namespace
}  // namespace bkm
