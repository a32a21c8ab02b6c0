// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/source_catalog.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

std::string CatalogErrorOf(const Json& sources) {
  return std::string(SourceCatalog().Add(sources, "m.json", "$.sources").message());
}

TEST(SourceCatalogTest, MatrixOverridesTheUrlOfABuiltInName) {
  SourceCatalog catalog;
  ASSERT_TRUE(catalog.Add(Json{{"verl", {{"git", "https://x/verl"}}}}, "m.json", "$.sources").ok());
  EXPECT_EQ(*catalog.Find("verl"), (Source{"verl", "https://x/verl", "verl"}));
}

TEST(SourceCatalogTest, NewSourceGetsItsImportNameFromItsName) {
  SourceCatalog catalog;
  ASSERT_TRUE(catalog.Add(Json{{"My-Lib", {{"git", "u"}}}}, "m.json", "$.sources").ok());
  EXPECT_EQ(*catalog.Find("my_lib"), (Source{"My-Lib", "u", "my_lib"}));
}

TEST(SourceCatalogTest, MistakesNameFileAndPath) {
  EXPECT_EQ(CatalogErrorOf(Json{{"verl", {{"url", "x"}}}}),
            "m.json: $.sources.verl: unknown key 'url' (known: git, package)");
  EXPECT_EQ(CatalogErrorOf(Json{{"new", Json::object()}}),
            "m.json: $.sources.new.git: a new source needs a URL or the package's import name");
  EXPECT_EQ(CatalogErrorOf(Json::array()),
            "m.json: $.sources: an object is needed here, not array");
}

TEST(SourceCatalogTest, NamesAreNormalizedAsPep503Says) {
  EXPECT_EQ(NormalizedName("Foo.-_Bar"), "foo-bar");
}

}  // namespace
}  // namespace bkm
