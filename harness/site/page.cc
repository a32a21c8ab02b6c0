// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/page.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bkm {
namespace {

using html::Element;
using html::Empty;
using html::Markup;

// Scripts and styles of the site only; `file:` for a site that is read without a server.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file: "
    "data:; base-uri 'none'; form-action 'none'";

Markup Head(const Page& page) {
  const auto link = [&](const char* target) { return RelativeLink(page.path, target); };
  return Element(
      "head",
      {Empty("meta", {{"charset", "utf-8"}}),
       Empty("meta", {{"http-equiv", "Content-Security-Policy"}, {"content", kPolicy}}),
       Empty("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}}),
       Empty("meta", {{"name", "referrer"}, {"content", "no-referrer"}}),
       Element("title", page.title), Empty("link", {{"rel", "icon"}, {"href", link("icon.svg")}}),
       Empty("link", {{"rel", "stylesheet"}, {"href", link("site.css")}}),
       Empty("script", {{"src", link("site.js")}})});
}

Markup Header(const Page& page, const SiteFrame& frame) {
  Markup entries;
  for (const SiteFrame::Entry& entry : frame.navigation) {
    html::Attributes attributes = {{"href", RelativeLink(page.path, entry.path)}};
    if (entry.path == page.path) attributes.push_back({"aria-current", "page"});
    entries << Element("li", Element("a", attributes, entry.title));
  }
  return Element(
      "header", {{"class", "top"}},
      Element("div", {{"class", "wide"}},
              {Element("a", {{"class", "name"}, {"href", RelativeLink(page.path, "index.html")}},
                       "bkm: what works together"),
               Element("nav", {{"aria-label", "Site"}}, Element("ul", entries)),
               Element("button",
                       {{"type", "button"}, {"class", "quiet"}, {"id", "theme"}, {"hidden", {}}},
                       "Dark")}));
}

}  // namespace

std::string RelativeLink(const std::string& from, const std::string& target) {
  std::string up;
  const std::string::difference_type depth = std::count(from.begin(), from.end(), '/');
  for (std::string::difference_type i = 0; i < depth; ++i) up += "../";
  return up + target;
}

std::string PathPart(const std::string& text) {
  std::string part;
  for (const char c : text) {
    const bool fits =
        absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
    part += fits ? c : '-';
  }
  const size_t first = part.find_first_not_of('.');  // no folder above, nothing hidden
  return first == std::string::npos ? "unnamed" : part.substr(first);
}

std::string WholePage(const Page& page, const SiteFrame& frame) {
  const Markup body = Element(
      "body",
      {Element("a", {{"class", "skip"}, {"href", "#content"}}, "Skip to the content"),
       Header(page, frame),
       Element("main", {{"class", "wide"}, {"id", "content"}, {"tabindex", "-1"}}, page.main),
       Element("footer", {{"class", "foot"}},
               Element("div", {{"class", "wide"}}, Element("p", frame.made)))});
  return absl::StrCat("<!doctype html>\n",
                      Element("html", {{"lang", "en"}}, {Head(page), "\n", body}).html(), "\n");
}

Markup Trail(const std::string& from, const std::vector<SiteFrame::Entry>& above,
             const std::string& here) {
  Markup trail;
  for (const SiteFrame::Entry& entry : above)
    trail << Element("a", {{"href", RelativeLink(from, entry.path)}}, entry.title) << " / ";
  return Element("nav", {{"class", "trail"}, {"aria-label", "Where you are"}},
                 {trail, Element("span", {{"aria-current", "page"}}, here)});
}

Markup CommandBlock(const std::vector<std::string>& lines, const std::string& says) {
  return Element("div", {{"class", "command"}, {"data-says", says}},
                 Element("pre", Element("code", absl::StrJoin(lines, "\n"))));
}

Markup ScrollBox(const std::string& label, const Markup& table) {
  return Element("section", {{"class", "scroll"}, {"tabindex", "0"}, {"aria-label", label}}, table);
}

}  // namespace bkm
