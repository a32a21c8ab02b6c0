// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/store/content_store.h"

#include <gtest/gtest.h>

#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// Of "abc": FIPS 180-2, appendix B.1.
constexpr char kAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

class ContentStoreTest : public ::testing::Test {
 protected:
  ContentStoreTest() : root_(*CreateTempDirectory(::testing::TempDir(), "store-")), store_(root_) {}
  fs::path root_;
  ContentStore store_;
};

TEST_F(ContentStoreTest, BytesAndFilesAreNamedByTheirContent) {
  EXPECT_EQ(*store_.PutBytes("abc"), kAbc);
  EXPECT_EQ(*ReadFile(*store_.Get(kAbc)), "abc");
  ASSERT_TRUE(WriteFile(root_ / "outside", "abc").ok());
  EXPECT_EQ(*store_.PutFile(root_ / "outside"), kAbc);
  EXPECT_EQ(*ReadFile(root_ / "outside"), "abc");
}

TEST_F(ContentStoreTest, StoredFileIsReadOnly) {
  ASSERT_TRUE(store_.PutBytes("abc").ok());
  EXPECT_EQ(fs::status(*store_.Get(kAbc)).permissions(),
            fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read);
}

TEST_F(ContentStoreTest, NothingButTheContentIsLeftBehind) {
  ASSERT_TRUE(store_.PutBytes("abc").ok());
  EXPECT_EQ(store_.PutFile(root_ / "no-such-file").status().code(), absl::StatusCode::kNotFound);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(root_)) names.push_back(entry.path().filename());
  EXPECT_EQ(names, std::vector<std::string>{"ba"});
}

TEST_F(ContentStoreTest, UnknownContentIsNotFound) {
  EXPECT_EQ(store_.Get(kAbc).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace bkm
