// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/tree_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "harness/base/files.h"
#include "harness/source/git_fixture.h"
#include "harness/source/subject_fault.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

class TreeViewsTest : public ::testing::Test {
 protected:
  TreeViewsTest()
      : root_(*CreateTempDirectory(::testing::TempDir(), "views-")),
        origin_(root_ / "origin"),
        views_(root_ / "blobs", PackageReader("/usr/bin/python3")) {}

  fs::path TryToMake(const std::string& commit) {
    const GitRepository repository(origin_.git_dir());
    const auto objects = *GitObjects::Open(repository);
    const std::string tree = *objects->TreeOf(commit);
    const fs::path folder = root_ / commit;
    fs::create_directories(folder);
    made_ = views_.Make(repository, *objects, commit, *objects->Walk(tree), "pkg", folder).status();
    return folder;
  }
  fs::path Make(const std::string& commit) {
    const fs::path folder = TryToMake(commit);
    EXPECT_TRUE(made_.ok()) << made_;
    return folder;
  }
  static ino_t Inode(const fs::path& path) {
    struct stat info = {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info.st_ino;
  }

  fs::path root_;
  GitFixture origin_;
  TreeViews views_;
  absl::Status made_;
};

TEST_F(TreeViewsTest, EqualFilesOfTwoCommitsAreOneFileAndCompiledOnce) {
  origin_.Write("pkg/same.py", "x = 1\n");
  origin_.Write("pkg/other.py", "y = 1\n");
  const fs::path first = Make(origin_.Commit("Begin", "2026-03-05"));
  origin_.Write("pkg/other.py", "y = 2\n");
  const fs::path second = Make(origin_.Commit("Go on", "2026-03-06"));
  EXPECT_EQ(Inode(first / "pkg/same.py"), Inode(second / "pkg/same.py"));
  EXPECT_NE(Inode(first / "pkg/other.py"), Inode(second / "pkg/other.py"));
  const auto compiled = [](const fs::path& tree, const std::string& name) {
    for (const auto& entry : fs::directory_iterator(tree / "pkg/__pycache__"))
      if (entry.path().filename().string().starts_with(name + ".")) return entry.path();
    return fs::path();
  };
  EXPECT_EQ(Inode(compiled(first, "same")), Inode(compiled(second, "same")));
  EXPECT_NE(Inode(compiled(first, "other")), Inode(compiled(second, "other")));
}

TEST_F(TreeViewsTest, ManyFilesAreLinkedInParallelBeforeAndAfterTheyAreKept) {
  constexpr int kFolders = 40, kFiles = 10;
  const auto name = [](int folder, int file) {
    return "pkg/f" + std::to_string(folder) + "/m" + std::to_string(file) + ".py";
  };
  for (int folder = 0; folder < kFolders; ++folder) {
    for (int file = 0; file < kFiles; ++file)
      origin_.Write(name(folder, file), "x = " + std::to_string(folder * kFiles + file) + "\n");
  }
  const fs::path first = Make(origin_.Commit("Begin", "2026-03-05"));
  origin_.Write("pkg/last.py", "");
  const fs::path second = Make(origin_.Commit("Go on", "2026-03-06"));
  for (const fs::path& tree : {first, second}) {
    for (int folder = 0; folder < kFolders; ++folder) {
      const fs::path place = (tree / name(folder, 0)).parent_path();
      EXPECT_EQ(std::distance(fs::directory_iterator(place / "__pycache__"), {}), kFiles);
      for (int file = 0; file < kFiles; ++file) {
        EXPECT_EQ(*ReadFile(tree / name(folder, file)),
                  "x = " + std::to_string(folder * kFiles + file) + "\n");
        EXPECT_EQ(Inode(tree / name(folder, file)), Inode(first / name(folder, file)));
      }
    }
  }
}

TEST_F(TreeViewsTest, KeptFileThatIsGoneIsKeptAgain) {
  origin_.Write("pkg/same.py", "x = 1\n");
  Make(origin_.Commit("Begin", "2026-03-05"));
  fs::remove_all(root_ / "blobs");
  origin_.Write("pkg/other.py", "y = 1\n");
  const fs::path tree = Make(origin_.Commit("Go on", "2026-03-06"));
  EXPECT_EQ(*ReadFile(tree / "pkg/same.py"), "x = 1\n");
  EXPECT_EQ(*ReadFile(tree / "pkg/other.py"), "y = 1\n");
}

TEST_F(TreeViewsTest, ModesAndLinksAreThoseOfTheCommit) {
  origin_.Write("pkg/run.sh", "#!/bin/sh\n");
  origin_.Write("pkg/text.sh", "#!/bin/sh\n");
  fs::permissions(origin_.folder() / "pkg/run.sh", fs::perms(0755));
  fs::create_symlink("run.sh", origin_.folder() / "pkg/link");
  const fs::path tree = Make(origin_.Commit("Begin", "2026-03-05"));
  EXPECT_EQ(fs::status(tree / "pkg/run.sh").permissions(), fs::perms(0555));
  EXPECT_EQ(fs::status(tree / "pkg/text.sh").permissions(), fs::perms(0444));
  EXPECT_EQ(fs::read_symlink(tree / "pkg/link"), "run.sh");
}

TEST_F(TreeViewsTest, FileThatDoesNotCompileIsLinkedWithoutBytecode) {
  origin_.Write("pkg/broken.py", "def f(:\n");
  origin_.Write("pkg/right.py", "x = 1\n");
  const fs::path tree = Make(origin_.Commit("Begin", "2026-03-05"));
  EXPECT_EQ(*ReadFile(tree / "pkg/broken.py"), "def f(:\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(tree / "pkg/__pycache__"), {}), 1);
}

TEST_F(TreeViewsTest, TracebackNamesTheFileOfTheCommitAndNotTheKeptOne) {
  origin_.Write("pkg/__init__.py", "");
  origin_.Write("pkg/raises.py", "def f():\n    raise KeyError(1)\n");
  const fs::path tree = Make(origin_.Commit("Begin", "2026-03-05"));
  const auto result =
      RunCommand({.argv = {"/usr/bin/python3", "-I", "-c",
                           "import sys; sys.path.insert(0, sys.argv[1]); import pkg.raises; "
                           "print(pkg.raises.f.__code__.co_filename, pkg.raises.__cached__)",
                           tree.string()}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->out, testing::StartsWith((tree / "pkg/raises.py").string() + " "));
}

TEST_F(TreeViewsTest, LinksOutOfTheTreeAreDeadAndOthersStay) {
  const fs::path secret = root_ / "secret";
  ASSERT_TRUE(WriteFile(secret, "s").ok());
  origin_.Write("pkg/sub/a.py", "");
  const fs::path pkg = origin_.folder() / "pkg";
  fs::create_symlink(secret, pkg / "absolute");
  fs::create_symlink("../../secret", pkg / "above");
  fs::create_directory_symlink("..", pkg / "up");
  fs::create_symlink("up/../secret", pkg / "through");
  fs::create_symlink("sub/a.py", pkg / "inside");
  const fs::path tree = Make(origin_.Commit("Begin", "2026-03-05"));
  for (const char* name : {"absolute", "above", "through"}) {
    EXPECT_TRUE(fs::is_symlink(tree / "pkg" / name)) << name;
    EXPECT_FALSE(fs::exists(tree / "pkg" / name)) << name;
  }
  EXPECT_EQ(fs::read_symlink(tree / "pkg/inside"), "sub/a.py");
  EXPECT_TRUE(fs::exists(tree / "pkg/up/pkg/inside"));
}

TEST_F(TreeViewsTest, CompiledFilesNeverGoThroughALinkOfTheCommit) {
  const fs::path outside = root_ / "outside";
  fs::create_directories(outside);
  origin_.Write("pkg/os.py", "x = 1\n");
  origin_.Write("pkg/sub/os.py", "x = 1\n");
  fs::create_directory_symlink(outside, origin_.folder() / "pkg/__pycache__");
  fs::create_directory_symlink("..", origin_.folder() / "pkg/sub/__pycache__");
  const fs::path tree = Make(origin_.Commit("Begin", "2026-03-05"));
  EXPECT_TRUE(fs::is_empty(outside));
  EXPECT_EQ(std::distance(fs::directory_iterator(tree / "pkg"), {}), 3);
}

TEST_F(TreeViewsTest, CompiledFilesThatTheCommitShipsAreItsOwn) {
  origin_.Write("pkg/a.py", "x = 1\n");
  for (const char* tag : {"cpython-310", "cpython-311", "cpython-312", "cpython-313"})
    origin_.Write(std::string("pkg/__pycache__/a.") + tag + ".pyc", "shipped");
  const fs::path tree = Make(origin_.Commit("Begin", "2026-03-05"));
  for (const auto& entry : fs::directory_iterator(tree / "pkg/__pycache__"))
    EXPECT_EQ(*ReadFile(entry.path()), "shipped") << entry.path();
}

TEST_F(TreeViewsTest, LinkWithoutATargetAndFileThatIsATreeAreFaults) {
  const std::string folder = origin_.WriteRaw("tree", "");
  for (const auto& [mode, id] : std::vector<std::pair<std::string, std::string>>{
           {"120000", origin_.WriteRaw("blob", "")},
           {"120000", origin_.WriteRaw("blob", std::string("a\0b", 3))},
           {"120000", origin_.WriteRaw("blob", std::string(5000, 'a'))},
           {"100644", folder}}) {
    TryToMake(origin_.CommitRaw(origin_.WriteRaw("tree", GitFixture::Entry(mode, "x.py", id))));
    EXPECT_EQ(FaultOf(made_), EndingKind::kTreeNotAllowed) << made_;
  }
}

TEST_F(TreeViewsTest, ManyLargeFilesOfOneContentAreTooMuch) {
  const std::string id = origin_.WriteRaw("blob", std::string(size_t{64} << 20, 'a'));
  std::string content;
  for (char name = 'a'; name <= 'q'; ++name)  // 17 * 64 MiB
    content += GitFixture::Entry("100644", std::string(1, name), id);
  const std::string commit = origin_.CommitRaw(origin_.WriteRaw("tree", content));
  TryToMake(commit);
  EXPECT_EQ(FaultOf(made_), EndingKind::kTreeNotAllowed) << made_;
}

TEST_F(TreeViewsTest, MissingFileIsAFaultOfThisCommitOnly) {
  TryToMake(origin_.CommitRaw(
      origin_.WriteRaw("tree", GitFixture::Entry("100644", "x.py", std::string(40, '4')))));
  EXPECT_EQ(FaultOf(made_), EndingKind::kSourceIncomplete) << made_;
}

}  // namespace
}  // namespace bkm
