// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/escape.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

constexpr char kLost[] = "\xEF\xBF\xBD";

TEST(EscapeTest, XmlHoldsNoMarkupOfStrangers) {
  EXPECT_EQ(XmlText("<a href=\"x\">'&'</a>"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
}

TEST(EscapeTest, XmlHoldsOnlyCharactersThatXmlKnows) {
  EXPECT_EQ(XmlText(absl::string_view("a\0b\x1b\r\x7f\tc\n", 9)),
            std::string("a") + kLost + "b" + kLost + kLost + kLost + "\tc\n");
  EXPECT_EQ(XmlText("\xEF\xBF\xBE"), kLost) << "U+FFFE";
  EXPECT_EQ(XmlText("\xED\xA0\x80"), std::string(kLost) + kLost + kLost) << "a surrogate";
  EXPECT_EQ(XmlText("\xC0\xAF"), std::string(kLost) + kLost) << "overlong";
  EXPECT_EQ(XmlText("\xE2\x82"), std::string(kLost) + kLost) << "cut off";
  EXPECT_EQ(XmlText("\xE2\x82\xAC \xF0\x9F\x98\x80"), "\xE2\x82\xAC \xF0\x9F\x98\x80");
}

TEST(EscapeTest, CsvFieldsAreQuotedAndNoFormulas) {
  EXPECT_EQ(CsvField("plain"), "plain");
  EXPECT_EQ(CsvField("a,\"b\"\nc"), "\"a,\"\"b\"\" c\"");
  EXPECT_EQ(CsvField("=1+1"), "'=1+1");
  EXPECT_EQ(CsvField("@x,y"), "\"'@x,y\"");
  EXPECT_EQ(CsvField(""), "");
}

}  // namespace
}  // namespace bkm
