// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/closure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using Files = std::vector<TreeListing::File>;

const Files kFiles = {{"pkg/__init__.py", "1"},
                      {"pkg/used.py", "2"},
                      {"pkg/unused.py", "3"},
                      {"pkg/data/a.yaml", "4"},
                      {"pkg/bare/x.py", "5"}};

// Whether a cell with this closure sees the same in kFiles and in `changed`.
bool Same(const TreeClosure& closure, const Files& changed) {
  return StateOf(closure, TreeListing(kFiles)) == StateOf(closure, TreeListing(changed));
}
Files With(const std::string& path, const std::string& id) {
  Files files = kFiles;
  std::erase_if(files, [&](const auto& file) { return file.first == path; });
  if (!id.empty()) files.emplace_back(path, id);
  return files;
}

TEST(ClosureTest, FileThatWasReadMattersAndAnotherDoesNot) {
  const TreeClosure closure{.read = {"pkg/used.py"}, .lookups = {"pkg", "pkg/used"}};
  EXPECT_FALSE(Same(closure, With("pkg/used.py", "changed")));
  EXPECT_FALSE(Same(closure, With("pkg/used.py", "")));
  EXPECT_TRUE(Same(closure, With("pkg/unused.py", "changed")));
  EXPECT_TRUE(Same(closure, With("pkg/unused.py", "")));
  EXPECT_TRUE(Same(closure, With("pkg/new.py", "new")));
}

TEST(ClosureTest, MissingFileThatWasTriedMattersOnceItExists) {
  EXPECT_FALSE(Same({.read = {"pkg/none.yaml"}}, With("pkg/none.yaml", "new")));
  EXPECT_FALSE(Same({.asked = {"pkg/none.yaml"}}, With("pkg/none.yaml", "new")));
  EXPECT_TRUE(Same({.asked = {"pkg/none.yaml"}}, With("pkg/other.yaml", "new")));
}

TEST(ClosureTest, MissingModuleMattersOnceAnyFormOfItExists) {
  const TreeClosure closure{.lookups = {"pkg/none", "scipy"}};
  EXPECT_FALSE(Same(closure, With("pkg/none.py", "new")));
  EXPECT_FALSE(Same(closure, With("pkg/none/__init__.py", "new")));
  EXPECT_FALSE(Same(closure, With("pkg/none/anything.txt", "new")));
  EXPECT_FALSE(Same(closure, With("pkg/none.cpython-311-x86_64-linux-gnu.so", "new")));
  EXPECT_FALSE(Same(closure, With("scipy.py", "new")));
  EXPECT_TRUE(Same(closure, With("pkg/nonesuch.py", "new")));
  EXPECT_TRUE(Same(closure, With("pkg/none.txt", "new")));
}

TEST(ClosureTest, NewSiblingCanShadowAFoundModule) {
  const TreeClosure closure{.read = {"pkg/used.py"}, .lookups = {"pkg/used"}};
  EXPECT_FALSE(Same(closure, With("pkg/used/__init__.py", "new")));
  EXPECT_FALSE(Same({.lookups = {"pkg/bare"}}, With("pkg/bare/__init__.py", "new")));
  EXPECT_TRUE(Same({.lookups = {"pkg/bare"}}, With("pkg/bare/y.py", "new")));
}

TEST(ClosureTest, ListedFolderMattersByItsNamesAlone) {
  const TreeClosure closure{.read = {"pkg/"}};
  EXPECT_FALSE(Same(closure, With("pkg/new.py", "new")));
  EXPECT_FALSE(Same(closure, With("pkg/unused.py", "")));
  EXPECT_TRUE(Same(closure, With("pkg/unused.py", "changed")));
  EXPECT_TRUE(Same(closure, With("pkg/data/b.yaml", "new")));
  EXPECT_FALSE(Same({.read = {"./"}}, With("setup.py", "new")));
}

TEST(ClosureTest, KindOfAPathMatters) {
  EXPECT_FALSE(Same({.asked = {"pkg/data"}}, With("pkg/data/a.yaml", "")));
  EXPECT_TRUE(Same({.asked = {"pkg/data"}}, With("pkg/data/a.yaml", "changed")));
  EXPECT_FALSE(Same({.asked = {"pkg/used.py"}}, With("pkg/used.py", "changed")));
}

TEST(ClosureTest, IsReadFromAnObservationAndBackFromItsText) {
  const Closure closure =
      *ClosureFromJson({{"engine", {"e/"}},
                        {"library", {"l.py"}},
                        {"lookups", {{"engine", {"e"}}, {"library", Json::array()}}},
                        {"asked", {{"library", {"q"}}}},
                        {"escapes", Json::array()},
                        {"whole", true}},
                       "observation.json");
  EXPECT_EQ(closure, (Closure{.engine = {.read = {"e/"}, .lookups = {"e"}},
                              .library = {.read = {"l.py"}, .asked = {"q"}},
                              .whole = true}));
  EXPECT_TRUE(closure.tells_all());
  EXPECT_EQ(*ClosureFromDependenceText(DependenceText(closure)), closure);
}

TEST(ClosureTest, IncompleteRecordDoesNotTellAll) {
  EXPECT_FALSE(ClosureFromJson(Json(), "o")->tells_all());
  EXPECT_FALSE(ClosureFromJson({{"engine", {"e.py"}}}, "o")->tells_all());
  EXPECT_FALSE(
      ClosureFromJson({{"whole", true}, {"escapes", {"subprocess.Popen git"}}}, "o")->tells_all());
  EXPECT_FALSE(ClosureFromJson({{"engine", {1}}}, "o").ok());
}

}  // namespace
}  // namespace bkm
