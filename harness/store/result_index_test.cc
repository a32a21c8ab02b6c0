// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/store/result_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using std::chrono::sys_seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ResultIndexTest : public ::testing::Test {
 protected:
  ResultIndexTest()
      : path_(*CreateTempDirectory(::testing::TempDir(), "index-") / "results.sqlite") {}
  fs::path path_;
};

TEST_F(ResultIndexTest, FindsTheLastResultPutUnderAKey) {
  ResultIndex index = *ResultIndex::Open(path_);
  const IndexedResult first{"/runs/1/cells/a", sys_seconds(seconds(100))};
  const IndexedResult second{"/runs/2/cells/a", sys_seconds(seconds(200))};
  ASSERT_TRUE(index.Put("k", first).ok());
  ASSERT_TRUE(index.Put("k", second).ok());
  EXPECT_EQ(*index.Find("k"), second);
  EXPECT_EQ(*index.Find("other"), std::nullopt);
  ASSERT_TRUE(index.Remove("k").ok());
  EXPECT_EQ(*index.Find("k"), std::nullopt);
}

TEST_F(ResultIndexTest, TwoOpenIndexesSeeEachOther) {
  ResultIndex a = *ResultIndex::Open(path_);
  ResultIndex b = *ResultIndex::Open(path_);
  const IndexedResult result{"/runs/1/cells/a", sys_seconds(seconds(100))};
  ASSERT_TRUE(a.Put("k", result).ok());
  EXPECT_EQ(*b.Find("k"), result);
}

TEST_F(ResultIndexTest, CorruptFileIsOneSentenceWithWhatToDo) {
  ASSERT_TRUE(WriteFile(path_, std::string(8192, 'x')).ok());
  const absl::Status status = ResultIndex::Open(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), path_.string() +
                                  ": file is not a database (remove this file: it only points at "
                                  "results, and new runs fill it again)");
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
