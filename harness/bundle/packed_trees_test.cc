// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/bundle/packed_trees.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

class PackedTreesTest : public ::testing::Test {
 protected:
  PackedTreesTest() : folder_(*CreateTempDirectory(::testing::TempDir(), "trees-")) {}

  PackedTree Pack(const fs::path& tree) {
    part_ = *PackTree(tree, nullptr, parts_);
    return *ReadPackedTree(*parts_.Read(part_), "packed");
  }

  const fs::path folder_;
  PartFile parts_ = *PartFile::Open(folder_ / "parts.bkm");
  std::string part_;
};

TEST_F(PackedTreesTest, ATreeComesBackAsItWas) {
  const fs::path tree = folder_ / "tree";
  ASSERT_TRUE(WriteFile(tree / "pkg/__init__.py", "x = 1\n").ok());
  ASSERT_TRUE(WriteFile(tree / "pkg/run", "#!/bin/sh\n").ok());
  fs::permissions(tree / "pkg/run", fs::perms::owner_exec, fs::perm_options::add);
  ASSERT_TRUE(WriteFile(tree / "pkg/empty", "").ok());
  fs::create_directories(tree / "no/files");
  fs::create_symlink("__init__.py", tree / "pkg/link.py");

  const PackedTree packed = Pack(tree);
  ASSERT_TRUE(WriteTree(packed, parts_, folder_ / "again").ok());

  const TreeListing before = *TreeListing::OfFolder(tree);
  EXPECT_EQ(TreeListing::OfFolder(folder_ / "again")->files(), before.files());
  EXPECT_EQ(ListingOf(packed).digest(), before.digest());
}

TEST_F(PackedTreesTest, EqualFilesAreOnePart) {
  const fs::path tree = folder_ / "tree";
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(WriteFile(tree / name, "same").ok());
  Pack(tree);
  EXPECT_EQ(parts_.Size()->first, 2);  // the content and the tree
}

TEST_F(PackedTreesTest, ALinkOutOfTheTreeBecomesADeadOne) {
  const PackedTree packed{.files = {{"link", "0@", *parts_.Add("/etc/passwd")},
                                    {"pkg/up", "0@", *parts_.Add("../../outside")}}};
  ASSERT_TRUE(WriteTree(packed, parts_, folder_ / "again").ok());
  EXPECT_EQ(fs::read_symlink(folder_ / "again/link"), ".bkm-outside-of-the-tree");
  EXPECT_EQ(fs::read_symlink(folder_ / "again/pkg/up"), ".bkm-outside-of-the-tree");
}

TEST_F(PackedTreesTest, ADamagedPartWritesNoTree) {
  const FolderCache trees(folder_ / "trees");
  const PackedTree packed{.files = {{"pkg/a.py", "0", std::string(64, '0')}}};
  const absl::Status status =
      PlaceTree(trees, std::string(64, '1'), packed, parts_, "pkg", "/usr/bin/python3", "3.11")
          .status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_FALSE(trees.Get("bundle-" + std::string(64, '1') + "-3.11"));
}

TEST_F(PackedTreesTest, APlacedTreeIsCompiledAndKept) {
  ASSERT_TRUE(WriteFile(folder_ / "tree/pkg/__init__.py", "x = 1\n").ok());
  const PackedTree packed = Pack(folder_ / "tree");
  const FolderCache trees(folder_ / "trees");
  const auto place = [&] {
    return *PlaceTree(trees, part_, packed, parts_, "pkg", "/usr/bin/python3", "3.11");
  };
  const fs::path placed = place();
  EXPECT_EQ(*ReadFile(placed / "pkg/__init__.py"), "x = 1\n");
  EXPECT_TRUE(fs::is_directory(placed / "pkg/__pycache__"));
  const auto written = fs::last_write_time(placed / "pkg/__init__.py");
  EXPECT_EQ(place(), placed);
  EXPECT_EQ(fs::last_write_time(placed / "pkg/__init__.py"), written);
}

}  // namespace
}  // namespace bkm
