// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/html.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/shown_text.h"

namespace bkm::html {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

bool IsVoid(absl::string_view name) {
  for (const char* known : {"br", "hr", "img", "input", "link", "meta", "col", "wbr"}) {
    if (name == known) return true;
  }
  return false;
}

// True for relative addresses and https. Others could run a script or name a local file.
bool IsSafeAddress(absl::string_view address) {
  if (absl::StartsWith(address, "https://")) return true;
  if (absl::StartsWith(address, "//") || absl::StartsWith(address, "\\")) return false;
  const size_t colon = address.find(':');
  return colon == absl::string_view::npos || address.find_first_of("/?#") < colon;
}

}  // namespace

std::string Escaped(absl::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = DecodeUtf8(text, at);
    if (character.bytes == 0 || !IsShown(character.code)) {
      out += kReplacement;
    } else if (character.code == '&') {
      out += "&amp;";
    } else if (character.code == '<') {
      out += "&lt;";
    } else if (character.code == '>') {
      out += "&gt;";
    } else if (character.code == '"') {
      out += "&quot;";
    } else if (character.code == '\'') {
      out += "&#39;";
    } else {
      out.append(text.data() + at, character.bytes);
    }
    at += character.bytes == 0 ? 1 : character.bytes;
  }
  return out;
}

Markup Element(Name name, const Attributes& attributes, const Markup& content) {
  std::string html = absl::StrCat("<", name.text());
  for (const Attribute& attribute : attributes) {
    const absl::string_view key = attribute.name.text();
    const bool is_address = key == "href" || key == "src";
    if (is_address && attribute.value && !IsSafeAddress(*attribute.value)) continue;
    absl::StrAppend(&html, " ", key);
    if (attribute.value) absl::StrAppend(&html, "=\"", Escaped(*attribute.value), "\"");
  }
  html += ">";
  if (!IsVoid(name.text())) absl::StrAppend(&html, content.html(), "</", name.text(), ">");
  return Markup::FromOwnMarkup(std::move(html));
}

Markup Element(Name name, const Markup& content) { return Element(name, Attributes(), content); }

Markup Empty(Name name, const Attributes& attributes) {
  return Element(name, attributes, Markup());
}

std::string Number(double value) {
  if (!std::isfinite(value)) return "0";
  std::string text = absl::StrFormat("%.2f", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

}  // namespace bkm::html
