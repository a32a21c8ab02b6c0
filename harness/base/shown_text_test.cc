// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/shown_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/base/json.h"

namespace bkm {
namespace {

constexpr char kGone[] = "\uFFFD";

TEST(ShownTextTest, KeepsWordsOfEveryLanguage) {
  EXPECT_EQ(ShownText("a\nb \u00e9 \u4e2d \U0001F600"), "a\nb \u00e9 \u4e2d \U0001F600");
}

TEST(ShownTextTest, ATerminalSequenceLosesItsEscape) {
  EXPECT_EQ(ShownText("a\x1b[2J\x07\r\tb"), "a [2J   b");
  EXPECT_EQ(ShownText(std::string("a\0b\x7f", 4)), "a b ");
}

TEST(ShownTextTest, C1BytesAreReplacedAsCharactersAndAsBytes) {
  EXPECT_EQ(ShownText("\u009b31m"), std::string(kGone) + "31m");  // CSI in UTF-8
  EXPECT_EQ(ShownText("\x9b"
                      "31m"),
            std::string(kGone) + "31m");
}

TEST(ShownTextTest, CharactersThatChangeDirectionOrHideAreReplaced) {
  const std::vector<std::string> hidden = {
      "\u00ad", "\u034f", "\u061c", "\u115f", "\u180e", "\u200b",     "\u200c",     "\u200d",
      "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202e",     "\u2060",     "\u2066",
      "\u2069", "\u206f", "\u3164", "\ufe0f", "\ufeff", "\U000E0041", "\U000E0100", "\uffff"};
  for (const std::string& one : hidden) EXPECT_EQ(ShownText(one), kGone) << one;
}

TEST(ShownTextTest, BytesThatAreNotUtf8AreReplacedOneByOne) {
  const std::vector<std::string> broken = {"\xff",         "\xc0\xaf",         "\xe0\x80\x80",
                                           "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82"};
  for (const std::string& one : broken) {
    std::string expected;
    for (size_t i = 0; i < one.size(); ++i) expected += kGone;
    EXPECT_EQ(ShownText(one), expected);
  }
}

TEST(ShownLineTest, IsOneLineWithSingleSpaces) {
  EXPECT_EQ(ShownLine(" a\n\n  b\t\u2028c \r\n"), std::string("a b ") + kGone + "c");
  EXPECT_EQ(ShownLine(" \n"), "");
}

TEST(MarkdownTextTest, NothingInItIsMarkdown) {
  EXPECT_EQ(MarkdownText("a|b\nc `d` *e* _f_ [g](h) ![i](j) <img src=x> & ~~k~~ $l$ \\"),
            "a\\|b c \\`d\\` \\*e\\* \\_f\\_ \\[g\\](h) !\\[i\\](j) &lt;img src=x&gt; &amp; "
            "\\~\\~k\\~\\~ \\$l\\$ \\\\");
}

TEST(MarkdownTextTest, AddressesAndMentionsAreNoLinks) {
  EXPECT_EQ(MarkdownText("https://a.b and WWW.c.d"), "https\\://a.b and WWW\\.c.d");
  EXPECT_EQ(MarkdownText("@bot a@b.c #12 # x @ y"),
            "\uFF20"
            "bot a\uFF20"
            "b.c \uFF03"
            "12 # x @ y");
}

TEST(MarkdownTextTest, NoBlockBeginsWithIt) {
  EXPECT_EQ(MarkdownText("# a"), "\\# a");
  EXPECT_EQ(MarkdownText("- a"), "\\- a");
  EXPECT_EQ(MarkdownText("+ a"), "\\+ a");
  EXPECT_EQ(MarkdownText("==="), "\\===");
  EXPECT_EQ(MarkdownText("> a"), "&gt; a");
  EXPECT_EQ(MarkdownText("12. a"), "12\\. a");
  EXPECT_EQ(MarkdownText("1) a"), "1\\) a");
  EXPECT_EQ(MarkdownText("0.9.1 (2026-06-01)"), "0.9.1 (2026-06-01)");
  EXPECT_EQ(MarkdownText("a\r\n\n# b\u2028c"), std::string("a") + kGone + "  # b" + kGone + "c");
}

TEST(MarkdownCodeTest, EndsOnlyWithItself) {
  EXPECT_EQ(MarkdownCode("lookup-failed"), "`lookup-failed`");
  EXPECT_EQ(MarkdownCode("a`<b>|\n\x1b"), "`a'<b>\\|`");
}

TEST(EscapedJsonTest, KeepsTheValueAndShowsEveryCharacter) {
  const Json value = "a\u202eb\u009b\U000E0041\u4e2d\x7f";

  const std::string text = EscapedJson(value.dump());

  EXPECT_EQ(text, "\"a\\u202eb\\u009b\\udb40\\udc41\u4e2d\\u007f\"");
  EXPECT_EQ(Json::parse(text), value);
}

}  // namespace
}  // namespace bkm
