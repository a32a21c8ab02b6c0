// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/html.h"

#include <gtest/gtest.h>

#include <limits>

namespace bkm::html {
namespace {

TEST(HtmlTest, TextCannotBecomeMarkup) {
  EXPECT_EQ(Element("p", {{"title", "\"><script>"}}, "<script>alert('x')</script> & co").html(),
            "<p title=\"&quot;&gt;&lt;script&gt;\">&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; "
            "&amp; co</p>");
}

TEST(HtmlTest, ElementsNest) {
  Markup list;
  for (const char* item : {"a", "b"}) list << Element("li", item);
  EXPECT_EQ(Element("ul", {{"class", "x"}, {"hidden", std::nullopt}}, list).html(),
            "<ul class=\"x\" hidden><li>a</li><li>b</li></ul>");
  EXPECT_EQ(Element("p", {"a ", Empty("br", {}), "b"}).html(), "<p>a <br>b</p>");
}

TEST(HtmlTest, InvalidTextIsReplaced) {
  EXPECT_EQ(Escaped("a\x01\x1b[2Jb\xff\xc3\xa9"),
            "a\xEF\xBF\xBD\xEF\xBF\xBD[2Jb\xEF\xBF\xBD\xc3\xa9");
  EXPECT_EQ(Escaped("\xe2\x80\xae"
                    "x"),
            "\xEF\xBF\xBDx")
      << "a direction override";
  EXPECT_EQ(Escaped("\xc0\xbc"), "\xEF\xBF\xBD\xEF\xBF\xBD") << "an overlong <";
  EXPECT_EQ(Escaped("\xed\xa0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD") << "a surrogate";
  EXPECT_EQ(Escaped("\xf0\x9f\x98"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD") << "cut off";
  EXPECT_EQ(Escaped("\xf0\x9f\x98\x80\n\t"), "\xf0\x9f\x98\x80\n\t");
}

TEST(HtmlTest, AddressesThatCouldRunScriptsOrNameLocalFilesAreDropped) {
  const auto link = [](const char* address) {
    return Element("a", {{"href", address}}, "x").html();
  };
  EXPECT_EQ(link("runs/a.html#b:c"), "<a href=\"runs/a.html#b:c\">x</a>");
  EXPECT_EQ(link("https://example.org/?a=1&b=2"),
            "<a href=\"https://example.org/?a=1&amp;b=2\">x</a>");
  for (const char* bad : {"javascript:alert(1)", "JaVaScript:alert(1)", "data:text/html,x",
                          "file:///etc/passwd", "//example.org/x", "http://example.org"}) {
    EXPECT_EQ(link(bad), "<a>x</a>") << bad;
  }
}

TEST(HtmlTest, CoordinatesAreShort) {
  EXPECT_EQ(Number(12), "12");
  EXPECT_EQ(Number(0.126), "0.13");
  EXPECT_EQ(Number(-0.001), "0");
  EXPECT_EQ(Number(std::numeric_limits<double>::infinity()), "0");
}

}  // namespace
}  // namespace bkm::html
