// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runtime/bytecode.h"

#include <gtest/gtest.h>

#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

class BytecodeTest : public ::testing::Test {
 protected:
  BytecodeTest() : root_(*CreateTempDirectory(::testing::TempDir(), "bytecode-")) {
    EXPECT_TRUE(WriteFile(root_ / "a/pkg/same.py", "x = 1\n").ok());
    EXPECT_TRUE(WriteFile(root_ / "a/pkg/other.py", "x = 1\n").ok());
    EXPECT_TRUE(WriteFile(root_ / "b/pkg/other.py", "x = 2\n").ok());
    fs::create_hard_link(root_ / "a/pkg/same.py", root_ / "b/pkg/same.py");
    EXPECT_TRUE(CompileBytecode("/usr/bin/python3", root_ / "a").ok());
    for (const auto& entry : fs::directory_iterator(root_ / "a/pkg/__pycache__")) {
      const std::string name = entry.path().filename();  // other.cpython-311.pyc
      tag_ = name.substr(name.find('-') + 1, name.rfind('.') - name.find('-') - 1);
    }
  }
  std::string Pyc(const char* stem) { return std::string(stem) + ".cpython-" + tag_ + ".pyc"; }

  fs::path root_;
  std::string tag_;  // "311"
};

TEST_F(BytecodeTest, OnlyTheSameSourceFileIsLinked) {
  EXPECT_EQ(LinkBytecode(root_ / "a", root_ / "b", tag_), 1);
  EXPECT_TRUE(fs::equivalent(root_ / "a/pkg/__pycache__" / Pyc("same"),
                             root_ / "b/pkg/__pycache__" / Pyc("same")));
  EXPECT_FALSE(fs::exists(root_ / "b/pkg/__pycache__" / Pyc("other")));
}

TEST_F(BytecodeTest, CompilingKeepsWhatWasLinkedAndAddsTheRest) {
  LinkBytecode(root_ / "a", root_ / "b", tag_);
  ASSERT_TRUE(CompileBytecode("/usr/bin/python3", root_ / "b").ok());
  EXPECT_EQ(fs::hard_link_count(root_ / "b/pkg/__pycache__" / Pyc("same")), 2u);
  EXPECT_EQ(fs::hard_link_count(root_ / "b/pkg/__pycache__" / Pyc("other")), 1u);
}

TEST_F(BytecodeTest, MissingSiblingLinksNothing) {
  EXPECT_EQ(LinkBytecode(root_ / "no-such", root_ / "b", tag_), 0);
}

TEST_F(BytecodeTest, BytecodeCanBeWrittenToAnotherFolder) {
  const fs::path elsewhere = root_ / "elsewhere", package = root_ / "b/pkg";
  ASSERT_TRUE(WriteFile(package / "__init__.py", "").ok());

  ASSERT_TRUE(CompileBytecodeElsewhere("/usr/bin/python3", package, elsewhere).ok());

  EXPECT_TRUE(fs::exists(elsewhere / package.relative_path() / Pyc("other")));
  EXPECT_FALSE(fs::exists(package / "__pycache__"));
  const std::string python = tag_.substr(0, 1) + "." + tag_.substr(1);
  EXPECT_FALSE(HasBytecode(package, python));
  ASSERT_TRUE(CompileBytecode("/usr/bin/python3", root_ / "b").ok());
  EXPECT_TRUE(HasBytecode(package, python));
  EXPECT_FALSE(HasBytecode(package, "2.7"));
}

}  // namespace
}  // namespace bkm
