// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/json.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

std::string ErrorOf(const char* text) {
  const Json json = *ParseJson(text, "a.json");
  ObjectReader reader(json, "a.json");
  reader.String("name");
  reader.Int("steps", 1, 1, 9);
  reader.Strings("attention");
  return std::string(reader.Finish().message());
}

TEST(JsonTest, ParseErrorNamesFileLineAndColumn) {
  EXPECT_EQ(ParseJson("{\n \"a\": 1,,\n}", "m.json").status().message(),
            "m.json: not JSON at line 2, column 9 (a missing or surplus comma, quote or brace?)");
}

TEST(JsonTest, DuplicateKeyIsRefused) {
  EXPECT_EQ(ParseJson(R"({"a": 1, "a": 2})", "m.json").status().message(),
            "m.json: the key 'a' appears twice in one object");
}

TEST(JsonTest, UnknownKeyIsRefusedWithASuggestion) {
  EXPECT_EQ(ErrorOf(R"({"name": "x", "stesp": 2})"),
            "a.json: $: unknown key 'stesp': did you mean 'steps'?");
}

TEST(JsonTest, WrongTypeNamesThePath) {
  EXPECT_EQ(ErrorOf(R"({"name": 3})"), "a.json: $.name: a string is needed here, not number");
  EXPECT_EQ(ErrorOf(R"({"name": "x", "steps": 1.5})"),
            "a.json: $.steps: a whole number is needed here, not 1.5");
  EXPECT_EQ(ErrorOf(R"({"name": "x", "steps": 10})"),
            "a.json: $.steps: 10 is out of range: 1 to 9");
  EXPECT_EQ(ErrorOf(R"({"name": "x", "attention": ["flex", 1]})"),
            "a.json: $.attention[1]: a string is needed here, not number");
}

TEST(JsonTest, MissingKeyIsNamed) {
  EXPECT_EQ(ErrorOf("{}"), "a.json: $: the key 'name' is missing");
}

}  // namespace
}  // namespace bkm
