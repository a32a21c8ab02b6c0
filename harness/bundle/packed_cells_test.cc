// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/bundle/packed_cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/source/tree_digest.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kProbe[] = "0123456789abcdef0123456789abcdef";

class PackedCellsTest : public ::testing::Test {
 protected:
  PackedCellsTest() : folder_(*CreateTempDirectory(::testing::TempDir(), "cells-")) {
    EXPECT_TRUE(WriteFile(folder_ / "engine/e/__init__.py", "x = 1\n").ok());
    EXPECT_TRUE(WriteFile(folder_ / kProbe / "manifest.sha256", "sums").ok());
    lock_ = std::make_shared<const RuntimeLock>(
        RuntimeLock{.runtime = "cpu",
                    .policy = "as-of",
                    .python = "3.11",
                    .packages = {{"torch", "2.13.0+cpu", {std::string(64, 'a')}}}});
  }

  PreparedCell Cell(const std::string& attention) const {
    PreparedCell cell;
    cell.record.cell.engine = "verl-torchtitan";
    cell.record.cell.engine_subject = SubjectSpec{SourceKind::kGit, "verl", std::string(40, 'a')};
    cell.record.cell.library_subject = SubjectSpec{SourceKind::kPypi, "torchtitan", "0.2.2"};
    cell.record.cell.torch = "2.13.0";
    cell.record.cell.runtime = "cpu";
    cell.record.cell.probe.attention = attention;
    cell.record.id = CellId(cell.record.cell);
    cell.record.dir = CellDirectory(cell.record.cell, cell.record.id);
    cell.record.lock = lock_->Key();
    cell.engine = Subject{.tree = folder_ / "engine", .package = "e", .content = "git-tree:1"};
    cell.engine_listing =
        std::make_shared<const TreeListing>(*TreeListing::OfFolder(folder_ / "engine"));
    cell.library = Subject{.package = "torchtitan", .content = "pypi:1"};
    cell.lock = lock_;
    cell.probe_folder = folder_ / kProbe;
    return cell;
  }
  PackedCells PackAndRead(const std::vector<PreparedCell>& cells) {
    const auto packed = WriteBundle(cells, {.matrix = "m", .cell_code = "code"}, File());
    EXPECT_TRUE(packed.ok()) << packed.status();
    absl::StatusOr<PackedCells> read = PackedCells::Read(*PartFile::OpenForReading(File()));
    EXPECT_TRUE(read.ok()) << read.status();
    return *std::move(read);
  }
  fs::path File() const { return folder_ / "cells.bkm"; }

  const fs::path folder_;
  const TaskSettings settings_{.cell_code = "code"};
  std::shared_ptr<const RuntimeLock> lock_;
};

TEST_F(PackedCellsTest, ACellHasTheKeyThatItHasHere) {
  const PreparedCell cell = Cell("flex");
  const PackedCells packed = PackAndRead({cell});
  const PackedCell& only = packed.manifest().cells.at(0);
  const PreparedCell again = packed.CellIn(only, packed.LockOf(only));
  EXPECT_EQ(again.record.id, cell.record.id);
  EXPECT_EQ(again.record.dir, cell.record.dir);
  EXPECT_EQ(KeyOf(again, settings_), KeyOf(cell, settings_));
}

TEST_F(PackedCellsTest, CellsShareTreesLocksAndProbes) {
  PackAndRead({Cell("flex")});
  const int64_t parts = PartFile::OpenForReading(File())->Size()->first;
  PackAndRead({Cell("flex"), Cell("varlen"), Cell("sdpa")});
  EXPECT_EQ(PartFile::OpenForReading(File())->Size()->first, parts);
}

TEST_F(PackedCellsTest, TheSameCellsAreTheSameBundle) {
  const std::string first = PackAndRead({Cell("flex")}).bundle();
  EXPECT_EQ(PackAndRead({Cell("flex")}).bundle(), first);
  EXPECT_NE(PackAndRead({Cell("varlen")}).bundle(), first);
}

TEST_F(PackedCellsTest, AnotherRuntimeMakesItAnotherCell) {
  const PackedCells packed = PackAndRead({Cell("flex")});
  const auto lock = std::make_shared<const RuntimeLock>(
      ExistingLock("cpu", "/usr/bin/python3", "3.12", {{"torch", "2.11.0+cu130"}}));
  const PreparedCell cell = packed.CellIn(packed.manifest().cells.at(0), lock);
  EXPECT_EQ(cell.record.cell.torch, "2.11.0");
  EXPECT_EQ(cell.record.lock, lock->Key());
  EXPECT_THAT(cell.record.id, HasSubstr("lock=" + lock->Key().substr(0, 12)));
  EXPECT_EQ(cell.record.id, CellId(cell.record.cell));
}

TEST_F(PackedCellsTest, ResultsHoldACopyWithoutTheSources) {
  const PackedCells packed = PackAndRead({Cell("flex")});
  PartFile results = *PartFile::Open(folder_ / "results.bkm");
  ASSERT_TRUE(packed.CopyTo(results).ok());
  const PackedCells copy = *PackedCells::Read(results);
  EXPECT_EQ(copy.bundle(), packed.bundle());
  const PackedCell& only = copy.manifest().cells.at(0);
  EXPECT_EQ(KeyOf(copy.CellIn(only, copy.LockOf(only)), settings_), KeyOf(Cell("flex"), settings_));
  EXPECT_LT(results.Size()->first, PartFile::OpenForReading(File())->Size()->first);
}

TEST_F(PackedCellsTest, AFolderThatChangesMeanwhileIsNotPacked) {
  PreparedCell cell = Cell("flex");
  cell.engine->content = "tree:of another moment";
  cell.engine_listing = nullptr;
  const absl::Status status =
      WriteBundle({cell}, {.matrix = "m", .cell_code = "code"}, File()).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("changed while it was packed"));
  EXPECT_FALSE(fs::exists(File()));
}

TEST_F(PackedCellsTest, ALockUnderAnotherKeyIsRefused) {
  PackAndRead({Cell("flex")});
  PartFile file = *PartFile::Open(File());
  const std::string manifest = *file.Read(*file.PartOf("manifest"));
  RuntimeLock other = *lock_;
  other.packages[0].version = "6.6.6";
  BundleManifest forged = *ReadManifest(manifest, "manifest");
  forged.locks[lock_->Key()] = *file.Add(ToText(ToJson(other)));
  ASSERT_TRUE(file.SetName("manifest", *file.Add(DocumentText(forged))).ok());
  EXPECT_THAT(std::string(PackedCells::Read(file).status().message()),
              HasSubstr("is another lock"));
}

}  // namespace
}  // namespace bkm
