// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_HTML_H_
#define HARNESS_BASE_HTML_H_

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// The one way to write HTML: a tree of calls whose text is escaped where it enters. What subjects
// wrote (messages, names, file names) can become text or an attribute's value, never markup.
namespace bkm::html {

// The name of an element or attribute. Only literals, checked when they are compiled.
class Name {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): names are written as literals all over.
  consteval Name(const char* text) : text_(text) {
    for (const char* c = text; *c; ++c) {
      const bool fits = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                        (*c >= '0' && *c <= '9') || *c == '-' || *c == ':';
      if (!fits) throw "not a name of HTML or SVG";
    }
  }
  const char* text() const { return text_; }

 private:
  const char* text_;
};

// `text` as the content of an element or the value of an attribute. Bytes that are not UTF-8,
// control characters and those that turn the direction of what follows become U+FFFD.
std::string Escaped(absl::string_view text);

// Finished HTML. Implicitly made of text, which is escaped.
class Markup {
 public:
  Markup() = default;
  Markup(const char* text) : html_(Escaped(text)) {}         // NOLINT
  Markup(const std::string& text) : html_(Escaped(text)) {}  // NOLINT
  Markup(absl::string_view text) : html_(Escaped(text)) {}   // NOLINT
  Markup(std::initializer_list<Markup> parts) {              // NOLINT
    for (const Markup& part : parts) html_ += part.html_;
  }

  // Only for markup that this program made of escaped parts itself.
  static Markup FromOwnMarkup(std::string html) {
    Markup markup;
    markup.html_ = std::move(html);
    return markup;
  }

  Markup& operator<<(const Markup& more) {
    html_ += more.html_;
    return *this;
  }
  const std::string& html() const { return html_; }
  bool empty() const { return html_.empty(); }

 private:
  std::string html_;
};

// name="value"; without a value just the name. Of href and src, anything but a relative address or
// https is dropped.
struct Attribute {
  Name name;
  std::optional<std::string> value;
};
using Attributes = std::vector<Attribute>;

// <name attributes>content</name>
Markup Element(Name name, const Attributes& attributes, const Markup& content);
Markup Element(Name name, const Markup& content);
// Without content; void elements (img, meta, ...) have no end either.
Markup Empty(Name name, const Attributes& attributes);

// "12.5", "0": for coordinates of pictures, at most two decimals.
std::string Number(double value);

}  // namespace bkm::html

#endif  // HARNESS_BASE_HTML_H_
