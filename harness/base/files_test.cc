// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/files.h"

#include <gtest/gtest.h>

#include "harness/base/hash.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

TEST(FilesTest, WriteCreatesFoldersAndReplacesWhole) {
  const fs::path path = fs::path(::testing::TempDir()) / "a" / "b" / "f";
  ASSERT_TRUE(WriteFile(path, "one").ok());
  ASSERT_TRUE(WriteFile(path, "two").ok());
  EXPECT_EQ(*ReadFile(path), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(path.parent_path()), fs::directory_iterator()), 1);
}

TEST(FilesTest, MissingFileIsNotFoundAndNamed) {
  const absl::Status status = ReadFile("/no/such/file").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "cannot read /no/such/file: No such file or directory");
}

TEST(FilesTest, HashIsSha256) {
  const fs::path path = fs::path(::testing::TempDir()) / "abc";
  ASSERT_TRUE(WriteFile(path, "abc").ok());
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(*Sha256OfFile(path), Sha256("abc"));
}

TEST(FilesTest, HashOfWhatCannotBeReadIsAnError) {
  EXPECT_EQ(Sha256OfFile("/no/such/file").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Sha256OfFile(::testing::TempDir()).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace bkm
