// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

std::string ParseErrorOf(const char* text) {
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
  EXPECT_EQ(ParseErrorOf(R"({"name": "x", "stesp": 2})"),
            "a.json: $: unknown key 'stesp': did you mean 'steps'?");
}

TEST(JsonTest, WrongTypeNamesThePath) {
  EXPECT_EQ(ParseErrorOf(R"({"name": 3})"), "a.json: $.name: a string is needed here, not number");
  EXPECT_EQ(ParseErrorOf(R"({"name": "x", "steps": 1.5})"),
            "a.json: $.steps: a whole number is needed here, not 1.5");
  EXPECT_EQ(ParseErrorOf(R"({"name": "x", "steps": 10})"),
            "a.json: $.steps: 10 is out of range: 1 to 9");
  EXPECT_EQ(ParseErrorOf(R"({"name": "x", "attention": ["flex", 1]})"),
            "a.json: $.attention[1]: a string is needed here, not number");
}

TEST(JsonTest, MissingKeyIsNamed) {
  EXPECT_EQ(ParseErrorOf("{}"), "a.json: $: the key 'name' is missing");
}

TEST(JsonTest, DeepNestingIsRefusedWithOneSentence) {
  for (const absl::string_view level : {"[", "{\"a\":"}) {
    std::string text;
    for (int i = 0; i < 200000; ++i) absl::StrAppend(&text, level);
    EXPECT_EQ(ParseJson(text, "deep.json").status().message(),
              "deep.json: the JSON is nested deeper than 1000 levels; bkm writes no such file");
  }
  const std::string allowed = std::string(1000, '[') + std::string(1000, ']');
  EXPECT_TRUE(ParseJson(allowed, "x").ok());
}

TEST(JsonTest, AFileThatIsTooLargeIsRefusedBeforeItIsRead) {
  const std::filesystem::path path = testing::TempDir() + "/large.json";
  std::ofstream(path) << "{}";
  std::filesystem::resize_file(path, int64_t{1} << 40);
  EXPECT_EQ(
      ReadJsonFile(path).status().message(),
      path.string() + ": a JSON file of 1048576 MiB is larger than the 256 MiB that bkm reads");
  std::filesystem::remove(path);
}

TEST(JsonTest, AWholeNumberBeyond64BitsWithASignIsOutOfRange) {
  const Json json = {{"a", uint64_t{18446744073709551615u}}};
  ObjectReader reader(json, "x");
  EXPECT_EQ(reader.Int("a", 7, INT64_MIN, INT64_MAX), 7);
  EXPECT_THAT(std::string(reader.Finish().message()),
              testing::HasSubstr("18446744073709551615 is out of range"));
}

TEST(JsonTest, WritesCharactersThatAreNotShownAsEscapes) {
  const Json json = {{"a", "\u202ex\x7f\x1b"}};
  EXPECT_EQ(ToLine(json), R"({"a":"\u202ex\u007f\u001b"})");
  EXPECT_EQ(Json::parse(ToText(json)), json);
}

}  // namespace
}  // namespace bkm
