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

TEST(ClosureTest, KindAndExecutableBitMatter) {
  EXPECT_FALSE(Same({.read = {"pkg/used.py"}}, With("pkg/used.py", "2*")));
  EXPECT_FALSE(Same({.asked = {"pkg/used.py"}}, With("pkg/used.py", "2@")));
  EXPECT_FALSE(Same({.read = {"pkg/"}}, With("pkg/used.py", "2@")));
  EXPECT_TRUE(Same({.read = {"pkg/"}}, With("pkg/used.py", "2*")));
}

TEST(ClosureTest, EmptyFolderIsNotAMissingOne) {
  EXPECT_FALSE(Same({.read = {"pkg/none/"}}, With("pkg/none/", "folder")));
  EXPECT_FALSE(Same({.asked = {"pkg/none"}}, With("pkg/none/", "folder")));
}

TEST(ClosureTest, CompiledFileMattersByItsSourceAndByTheCommitsOwn) {
  const std::string compiled = "pkg/__pycache__/used.cpython-311.pyc";
  EXPECT_FALSE(Same({.read = {compiled}}, With("pkg/used.py", "changed")));
  EXPECT_FALSE(Same({.read = {compiled}}, With(compiled, "shipped")));
  EXPECT_TRUE(Same({.read = {compiled}}, With("pkg/unused.py", "changed")));
  // The folder itself exists if any source beside it could be compiled.
  EXPECT_FALSE(Same({.asked = {"pkg/__pycache__"}}, With("pkg/unused.py", "changed")));
  EXPECT_FALSE(Same({.read = {"pkg/__pycache__/"}}, With("pkg/unused.py", "changed")));
  EXPECT_TRUE(Same({.read = {"pkg/"}}, With(compiled, "shipped")));
}

TEST(ClosureTest, CompiledFileWithoutSourceIsAModule) {
  EXPECT_FALSE(Same({.lookups = {"pkg/none"}}, With("pkg/none.pyc", "new")));
}

TEST(ClosureTest, IsReadFromWhatWasObservedAndBackFromItsText) {
  const Closure closure = **ClosureFromObserved(
      {{"observer", "fuse"},
       {"version", 1},
       {"complete", true},
       {"engine", {{"read", {"e/", "new\\nline"}}, {"lookups", {"e"}}, {"asked", Json::array()}}},
       {"library", {{"read", {"l.py"}}, {"lookups", Json::array()}, {"asked", {"q", "\\377"}}}}},
      "observed.json");
  EXPECT_EQ(closure, (Closure{.engine = {.read = {"e/", "new\nline"}, .lookups = {"e"}},
                              .library = {.read = {"l.py"}, .asked = {"q", "\377"}}}));
  EXPECT_EQ(*ClosureFromDependenceText(DependenceText(closure)), closure);
}

TEST(ClosureTest, WhatIsNotObservedInFullIsNoClosure) {
  const auto none = [](const Json& observed) {
    return *ClosureFromObserved(observed, "o") == std::nullopt;
  };
  Json whole = {{"observer", "fuse"}, {"version", 1}, {"complete", true}};
  EXPECT_FALSE(none(whole));
  EXPECT_TRUE(none(Json()));
  EXPECT_TRUE(none({{"engine", {"e.py"}}, {"whole", true}, {"escapes", Json::array()}}));
  for (const auto& [key, value] : {std::pair<const char*, Json>("observer", "another"),
                                   std::pair<const char*, Json>("version", 2),
                                   std::pair<const char*, Json>("complete", false)}) {
    Json changed = whole;
    changed[key] = value;
    EXPECT_TRUE(none(changed)) << key;
    changed.erase(key);
    EXPECT_TRUE(none(changed)) << key;
  }
  whole["engine"] = {{"read", {1}}};
  EXPECT_FALSE(ClosureFromObserved(whole, "o").ok());
}

TEST(ClosureTest, DependenceOfAnEarlierVersionIsRefused) {
  EXPECT_FALSE(ClosureFromDependenceText(R"({"engine":{"read":["a"]},"library":{}})").ok());
  EXPECT_FALSE(ClosureFromDependenceText("observed by fuse 1\nrstray\n").ok());
  EXPECT_FALSE(ClosureFromDependenceText("").ok());
}

}  // namespace
}  // namespace bkm
