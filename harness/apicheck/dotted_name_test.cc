// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/dotted_name.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

Statement From(int level, const std::string& text) {
  Statement statement;
  statement.kind = Statement::Kind::kFrom;
  statement.level = level;
  statement.text = text;
  return statement;
}

TEST(DottedNameTest, PackageHoldsItselfAndItsModulesOnly) {
  EXPECT_TRUE(IsWithin("lib", "lib"));
  EXPECT_TRUE(IsWithin("lib.a", "lib"));
  EXPECT_FALSE(IsWithin("library", "lib"));
  EXPECT_FALSE(IsWithin("li", "lib"));
}

TEST(DottedNameTest, RelativeImportStartsAtThePackageOfTheModule) {
  EXPECT_EQ(ImportTarget(From(0, "x.y"), "eng.a.b", false), "x.y");
  EXPECT_EQ(ImportTarget(From(1, "c"), "eng.a.b", false), "eng.a.c");
  EXPECT_EQ(ImportTarget(From(1, "c"), "eng.a.b", true), "eng.a.b.c");
  EXPECT_EQ(ImportTarget(From(2, ""), "eng.a.b", false), "eng");
}

TEST(DottedNameTest, RelativeImportBeyondTheTopPackageNamesNoModule) {
  EXPECT_EQ(ImportTarget(From(1, ""), "eng", false), "");
  EXPECT_EQ(ImportTarget(From(2, "c"), "eng.a", false), ".c");
}

}  // namespace
}  // namespace bkm
