// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_HTML_H_
#define HARNESS_BASE_HTML_H_

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// The only way to write HTML: nested calls that escape every text they take. Text from subjects
// (messages, names, file names) can become content or an attribute's value, but never markup.
namespace bkm::html {

// The name of an element or attribute. It must be a literal; the compiler checks its characters.
class Name {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): callers pass literals.
  consteval Name(const char* text) : text_(text) {
    for (const char* c = text; *c; ++c) {
      const bool fits = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                        (*c >= '0' && *c <= '9') || *c == '-' || *c == ':';
      if (!fits) throw "not a valid HTML or SVG name";
    }
  }
  const char* text() const { return text_; }

 private:
  const char* text_;
};

// Escapes `text` for use as an element's content or an attribute's value. Invalid UTF-8, control
// characters and characters that override the text direction become U+FFFD.
std::string Escaped(absl::string_view text);

// Finished HTML. Converts implicitly from text, which it escapes.
class Markup {
 public:
  Markup() = default;
  Markup(const char* text) : html_(Escaped(text)) {}         // NOLINT
  Markup(const std::string& text) : html_(Escaped(text)) {}  // NOLINT
  Markup(absl::string_view text) : html_(Escaped(text)) {}   // NOLINT
  Markup(std::initializer_list<Markup> parts) {              // NOLINT
    for (const Markup& part : parts) html_ += part.html_;
  }

  // Takes `html` as it is. Only for markup that this program itself composed of escaped parts.
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

// Written as name="value", or as just the name when there is no value. An href or src is dropped
// unless its address is relative or starts with https.
struct Attribute {
  Name name;
  std::optional<std::string> value;
};
using Attributes = std::vector<Attribute>;

// <name attributes>content</name>
Markup Element(Name name, const Attributes& attributes, const Markup& content);
Markup Element(Name name, const Markup& content);
// An element without content. Void elements (img, meta, ...) get no end tag.
Markup Empty(Name name, const Attributes& attributes);

// A coordinate of a picture with at most two decimals: "12.5", "0".
std::string Number(double value);

}  // namespace bkm::html

#endif  // HARNESS_BASE_HTML_H_
