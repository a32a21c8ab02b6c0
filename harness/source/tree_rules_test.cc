// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/tree_rules.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/source/subject_fault.h"
#include "harness/source/tree_digest.h"
#include "harness/source/tree_listing.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TreeRulesTest, NamesThatLeadElsewhereAreNotAllowed) {
  for (const char* name : {"", ".", "..", ".git", ".GIT", ".Git", "a/b", "/", "../x"}) {
    EXPECT_EQ(FaultOf(CheckName(name)), EndingKind::kTreeNotAllowed) << name;
  }
  EXPECT_EQ(FaultOf(CheckName(absl::string_view("a\0b", 3))), EndingKind::kTreeNotAllowed);
  for (const char* name : {"a", "...", ".gitignore", ".github", "git", "a b", "-r", "\\"}) {
    EXPECT_TRUE(CheckName(name).ok()) << name;
  }
}

TEST(TreeRulesTest, WrittenNamesArePrintableUtf8OfABoundedLength) {
  for (const char* name : {"a\nb", "\x1b[31m", "\x7f", "\xc2\x9b", "\xff", "\xc0\xaf",
                           "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82"}) {
    EXPECT_EQ(FaultOf(CheckWrittenName(name)), EndingKind::kTreeNotAllowed) << name;
  }
  EXPECT_EQ(FaultOf(CheckWrittenName(std::string(241, 'a'))), EndingKind::kTreeNotAllowed);
  for (const std::string& name :
       {std::string(240, 'a'), std::string("\xc3\xa4.py"), std::string("\xf0\x9f\x98\x80")})
    EXPECT_TRUE(CheckWrittenName(name).ok()) << name;
}

TEST(TreeRulesTest, MessageShowsANameEscapedAndCut) {
  const std::string message(CheckWrittenName("\x1b]0;" + std::string(300, 'x')).message());
  EXPECT_THAT(message, HasSubstr("'\\x1b]0;xxx"));
  EXPECT_LT(message.size(), 200u);
}

TEST(TreeRulesTest, LinkLeavesTheTreeWhereItMay) {
  for (const auto& [path, target] : std::vector<std::pair<std::string, std::string>>{
           {"a", "/etc/passwd"},
           {"a", ".."},
           {"a", "../x"},
           {"pkg/a", "../../x"},
           {"pkg/a", "./../.././x"},
           {"pkg/a", "sub/../x"},  // sub may be a link to "..", and then this is outside
           {"pkg/a", "..//../x"}}) {
    EXPECT_TRUE(LeavesTree(path, target)) << path << " -> " << target;
  }
  for (const auto& [path, target] : std::vector<std::pair<std::string, std::string>>{
           {"a", "b"}, {"pkg/a", "../x"}, {"pkg/a", ".."}, {"pkg/sub/a", "../../x/y"}}) {
    EXPECT_FALSE(LeavesTree(path, target)) << path << " -> " << target;
  }
}

class FindFilesTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& content) {
    ASSERT_TRUE(WriteFile(root_ / path, content).ok());
  }
  absl::Status Find(const TreeBounds& bounds) {
    std::vector<FoundFile> files;
    RETURN_IF_ERROR(FindFiles(root_, bounds, files));
    for (const FoundFile& file : files) found_.push_back(file.path + (file.is_link ? "@" : ""));
    return absl::OkStatus();
  }
  const fs::path root_ = *CreateTempDirectory(::testing::TempDir(), "rules-");
  std::vector<std::string> found_;
};

TEST_F(FindFilesTest, LinksAreListedAndNeverFollowed) {
  const fs::path outside = *CreateTempDirectory(::testing::TempDir(), "outside-");
  ASSERT_TRUE(WriteFile(outside / "secret", "s").ok());
  Write("pkg/a.py", "");
  fs::create_directory_symlink(outside, root_ / "pkg/folder");
  fs::create_symlink(outside / "secret", root_ / "pkg/file.py");
  fs::create_directory_symlink(".", root_ / "pkg/loop");
  ASSERT_TRUE(Find(TreeBounds()).ok());
  EXPECT_THAT(found_, ElementsAre("pkg/a.py", "pkg/file.py@", "pkg/folder@", "pkg/loop@"));
}

TEST_F(FindFilesTest, PipesAndSocketsAreLeftOutAndNothingWaitsForThem) {
  Write("pkg/a.py", "x = 1\n");
  ASSERT_EQ(::mkfifo((root_ / "pkg/pipe.py").c_str(), 0600), 0);
  ASSERT_EQ(::mknod((root_ / "pkg/socket.py").c_str(), S_IFSOCK | 0600, 0), 0);
  ASSERT_TRUE(Find(kPathBounds).ok());
  EXPECT_THAT(found_, ElementsAre("pkg/a.py"));
  EXPECT_TRUE(TreeDigest(root_).ok());
  EXPECT_THAT(TreeListing::OfFolder(root_)->files(),
              ElementsAre(testing::Pair("pkg/a.py", BlobId("x = 1\n"))));
}

TEST_F(FindFilesTest, EachBoundIsAFaultOfTheSubject) {
  Write("a/b/c.py", "12345");
  Write("a/d.py", "12345");
  EXPECT_TRUE(Find({.entries = 4, .depth = 2, .path = 8, .file = 5, .all_files = 10}).ok());
  EXPECT_EQ(FaultOf(Find({.entries = 3})), EndingKind::kTreeNotAllowed);
  EXPECT_EQ(FaultOf(Find({.depth = 1})), EndingKind::kTreeNotAllowed);
  EXPECT_EQ(FaultOf(Find({.path = 7})), EndingKind::kTreeNotAllowed);
  EXPECT_EQ(FaultOf(Find({.file = 4})), EndingKind::kTreeNotAllowed);
  EXPECT_EQ(FaultOf(Find({.all_files = 9})), EndingKind::kTreeNotAllowed);
}

TEST_F(FindFilesTest, HugeSparseFileIsRefusedWithoutReadingIt) {
  Write("pkg/a.py", "");
  fs::resize_file(root_ / "pkg/a.py", uintmax_t{1} << 40);
  EXPECT_EQ(FaultOf(TreeDigest(root_).status()), EndingKind::kTreeNotAllowed);
}

TEST(SubjectFaultTest, ContextKeepsTheFault) {
  EXPECT_EQ(FaultOf(WithContext(TreeNotAllowed("too deep"), "git:pkg@main")),
            EndingKind::kTreeNotAllowed);
  EXPECT_EQ(FaultOf(absl::NotFoundError("gone")), std::nullopt);
}

}  // namespace
}  // namespace bkm
