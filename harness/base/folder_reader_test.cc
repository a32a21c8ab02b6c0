// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/folder_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>

#include "harness/base/files.h"
#include "harness/base/link_tree.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FolderReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = *CreateTempDirectory(testing::TempDir(), "folder");
    ASSERT_TRUE(WriteFile(folder_ / "cell/tensors/a", "content").ok());
    ASSERT_TRUE(WriteFile(folder_ / "secret", "secret").ok());
  }
  void TearDown() override { RemoveTree(folder_).IgnoreError(); }

  FolderReader reader() const { return FolderReader(folder_ / "cell"); }
  std::string ErrorOf(absl::string_view file) const {
    const absl::StatusOr<std::string> read = reader().Read(file, 100);
    return read.ok() ? "read: " + *read : std::string(read.status().message());
  }

  fs::path folder_;
};

TEST_F(FolderReaderTest, ReadsARegularFileBelowTheFolder) {
  EXPECT_EQ(*reader().Read("tensors/a", 7), "content");
}

TEST_F(FolderReaderTest, AMissingFileIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(reader().Read("tensors/b", 7).status()));
  EXPECT_TRUE(absl::IsNotFound(reader().Read("none/b", 7).status()));
}

TEST_F(FolderReaderTest, NamesThatLeaveTheFolderAreRefused) {
  for (const std::string& name :
       {std::string("../secret"), std::string("tensors/../../secret"),
        (folder_ / "secret").string(), std::string(""), std::string("."), std::string("tensors//a"),
        std::string("tensors/"), std::string("tensors/a\0b", 11), std::string(300, 'x')}) {
    EXPECT_THAT(ErrorOf(name), HasSubstr("is not the name of a file below")) << name;
  }
}

TEST_F(FolderReaderTest, LinksAreNotFollowedAnywhereOnTheWay) {
  fs::create_symlink(folder_ / "secret", folder_ / "cell/tensors/link");
  fs::create_directory_symlink(folder_, folder_ / "cell/up");

  EXPECT_THAT(ErrorOf("tensors/link"), HasSubstr("a link or no regular file"));
  EXPECT_THAT(ErrorOf("up/secret"), HasSubstr("a link or no regular file"));
}

TEST_F(FolderReaderTest, SpecialFilesAreRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo((folder_ / "cell/fifo").c_str(), 0600), 0);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {.sun_family = AF_UNIX};
  ASSERT_EQ(::chdir((folder_ / "cell").c_str()), 0);  // a socket's name is short
  std::string("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::chdir("/"), 0);
  ::close(socket);

  EXPECT_THAT(ErrorOf("fifo"), HasSubstr("is a pipe, not a regular file"));
  EXPECT_THAT(ErrorOf("socket"), HasSubstr("a link or no regular file"));
  EXPECT_THAT(ErrorOf("tensors"), HasSubstr("is a folder, not a regular file"));
}

TEST_F(FolderReaderTest, ALongFileIsRefusedBeforeItIsRead) {
  ASSERT_EQ(::truncate((folder_ / "cell/tensors/a").c_str(), int64_t{1} << 40), 0);

  EXPECT_THAT(ErrorOf("tensors/a"), HasSubstr("at most 100 are read"));
}

TEST_F(FolderReaderTest, ListsWhatLiesInASubfolderByName) {
  fs::create_symlink("a", folder_ / "cell/tensors/b");
  fs::create_hard_link(folder_ / "secret", folder_ / "cell/tensors/c");

  const auto entries = *reader().List("tensors", 3);

  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[0].bytes, 7);
  EXPECT_TRUE(entries[0].is_regular);
  EXPECT_FALSE(entries[1].is_regular);
  EXPECT_EQ(entries[2].links, 2);
  EXPECT_THAT(std::string(reader().List("tensors", 2).status().message()),
              HasSubstr("more than 2 files"));
  EXPECT_TRUE(reader().List("none", 2)->empty());
}

TEST_F(FolderReaderTest, ALinkedCopyHasRegularFilesOnly) {
  fs::create_symlink(folder_ / "secret", folder_ / "cell/tensors/link");
  fs::create_directory_symlink(folder_, folder_ / "cell/tensors/up");
  ASSERT_EQ(::mkfifo((folder_ / "cell/tensors/fifo").c_str(), 0600), 0);

  ASSERT_TRUE(LinkTree(folder_ / "cell", folder_ / "copy").ok());

  std::vector<std::string> copied;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_ / "copy/tensors"))
    copied.push_back(entry.path().filename());
  EXPECT_EQ(copied, std::vector<std::string>{"a"});
}

TEST_F(FolderReaderTest, ALinkThatIsCopiedAsAWholeIsLeftOut) {
  fs::create_directory_symlink(folder_, folder_ / "cell/link");

  ASSERT_TRUE(LinkTree(folder_ / "cell/link", folder_ / "copy").ok());

  EXPECT_FALSE(fs::exists(folder_ / "copy"));
}

}  // namespace
}  // namespace bkm
