// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/base/descriptor.h"
#include "harness/base/file_steps.h"
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

// Records the steps, and lets the one of a given kind fail.
class RecordedSteps : public FileSteps {
 public:
  int Write(int file, const fs::path& path, absl::string_view content) override {
    return Step("write", [&] { return FileSteps::Write(file, path, content); });
  }
  int Sync(int file, const fs::path& path) override {
    return Step("sync", [&] { return FileSteps::Sync(file, path); });
  }
  int Rename(const fs::path& from, const fs::path& to) override {
    return Step("rename", [&] { return FileSteps::Rename(from, to); });
  }
  int SyncFolder(int folder, const fs::path& path) override {
    return Step("sync " + path.filename().string(),
                [&] { return FileSteps::SyncFolder(folder, path); });
  }
  std::vector<std::string> taken;
  std::string failing;
  int error = 0;

 private:
  template <typename F>
  int Step(const std::string& name, F step) {
    taken.push_back(name);
    return name == failing ? error : step();
  }
};

TEST(FilesTest, WrittenFileAndNewFoldersAreSyncedInTheOrderThatAPowerCutNeeds) {
  const fs::path root = *CreateTempDirectory(::testing::TempDir(), "sync-");
  RecordedSteps steps;
  const ReplacedFileSteps replaced(steps);
  ASSERT_TRUE(WriteFile(root / "new" / "newer" / "f", "x").ok());
  EXPECT_EQ(steps.taken,
            (std::vector<std::string>{"write", "sync", "rename", "sync newer", "sync new",
                                      "sync " + root.filename().string()}));
  steps.taken.clear();
  ASSERT_TRUE(WriteScratchFile(root / "new" / "g", "x").ok());
  EXPECT_EQ(steps.taken, (std::vector<std::string>{"write", "rename"}));
}

TEST(FilesTest, AFailedStepKeepsTheOldContentAndLeavesNothingBehind) {
  const fs::path path = *CreateTempDirectory(::testing::TempDir(), "fail-") / "f";
  ASSERT_TRUE(WriteFile(path, "old").ok());
  for (const char* step : {"write", "sync", "rename"}) {
    for (const auto& [error, code] : {std::pair(ENOSPC, absl::StatusCode::kResourceExhausted),
                                      std::pair(EDQUOT, absl::StatusCode::kResourceExhausted),
                                      std::pair(EIO, absl::StatusCode::kUnavailable)}) {
      RecordedSteps steps;
      steps.failing = step;
      steps.error = error;
      const ReplacedFileSteps replaced(steps);
      EXPECT_EQ(WriteFile(path, "new").code(), code) << step;
      EXPECT_EQ(*ReadFile(path), "old") << step;
      EXPECT_EQ(std::distance(fs::directory_iterator(path.parent_path()), fs::directory_iterator()),
                1);
    }
  }
}

TEST(FilesTest, ATreeDeeperThanAnyPathIsRemoved) {
  const fs::path top = *CreateTempDirectory(::testing::TempDir(), "deep-");
  Descriptor folder(::open(top.c_str(), O_RDONLY | O_DIRECTORY));
  for (int depth = 0; depth < 20000; ++depth) {
    ASSERT_EQ(::mkdirat(folder.get(), "d", 0700), 0) << depth;
    if (depth % 1000 == 0) ::close(::openat(folder.get(), "f", O_CREAT | O_WRONLY, 0600));
    Descriptor next(::openat(folder.get(), "d", O_RDONLY | O_DIRECTORY));
    if (depth == 10000) ::fchmod(folder.get(), 0500);
    folder = std::move(next);
  }
  EXPECT_TRUE(RemoveTree(top).ok()) << RemoveTree(top);
  EXPECT_FALSE(fs::exists(top));
}

TEST(FilesTest, RemovingFollowsNoLinkAndRemovesOneFileToo) {
  const fs::path top = *CreateTempDirectory(::testing::TempDir(), "links-");
  ASSERT_TRUE(WriteFile(top / "kept/file", "x").ok());
  ASSERT_TRUE(CreateDirectories(top / "gone/below").ok());
  fs::create_symlink(top / "kept", top / "gone/below/link");
  ASSERT_TRUE(WriteFile(top / "gone/.removing-1", "the name of a moved folder").ok());
  EXPECT_TRUE(RemoveTree(top / "gone").ok());
  EXPECT_FALSE(fs::exists(top / "gone"));
  EXPECT_TRUE(fs::exists(top / "kept/file"));
  EXPECT_TRUE(RemoveTree(top / "kept/file").ok());
  EXPECT_FALSE(fs::exists(top / "kept/file"));
  EXPECT_TRUE(RemoveTree(top / "missing").ok());
  EXPECT_TRUE(RemoveTree(top).ok());
}

TEST(FilesTest, MissingFileIsNotFoundAndNamed) {
  const absl::Status status = ReadFile("/no/such/file").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "cannot read /no/such/file: No such file or directory");
}

TEST(FilesTest, OnlyRegularFilesAreReadAndAFifoDoesNotBlock) {
  const fs::path folder = *CreateTempDirectory(::testing::TempDir(), "special-");
  const fs::path fifo = folder / "run.json", link = folder / "link.json";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  fs::create_symlink(fifo, link);
  for (const fs::path& path : {fifo, link, fs::path("/dev/zero")}) {
    const std::string message =
        absl::StrCat("cannot read ", path.string(), ": it is not a regular file");
    EXPECT_EQ(ReadFile(path).status().message(), message);
    EXPECT_EQ(Sha256OfFile(path).status().message(), message);
  }
  EXPECT_EQ(ReadFile(folder).status().message(),
            absl::StrCat("cannot read ", folder.string(), ": Is a directory"));
  EXPECT_THAT(*ReadFile("/proc/self/status"), testing::HasSubstr("VmRSS"));
}

TEST(FilesTest, AFileWithoutEndIsNotReadWhole) {
  const fs::path path = *CreateTempDirectory(::testing::TempDir(), "large-") / "sparse";
  ASSERT_TRUE(WriteFile(path, "x").ok());
  fs::resize_file(path, (uintmax_t{1} << 30) + 1);
  EXPECT_EQ(ReadFile(path).status().message(),
            absl::StrCat("cannot read ", path.string(), ": it is larger than 1 GiB"));
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
