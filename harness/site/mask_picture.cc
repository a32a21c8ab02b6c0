// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/mask_picture.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bkm {
namespace {

using html::Element;
using html::Empty;
using html::Markup;
using html::Number;

constexpr int kSize = 280;   // of the square, for any number of tokens
constexpr int kMargin = 30;  // for the names of documents

enum class Pair { kNothing, kAsAsked, kTooMany, kMissing };

// The pairs of one kind as strokes along their rows: "M12 3.5h4" is four of them.
std::string Strokes(const LayerAttention& attention, const Relation& right, Pair kind,
                    size_t& count) {
  const int64_t tokens = attention.seen.tokens();
  std::string path;
  for (int64_t query = 0; query < tokens; ++query) {
    int64_t begin = -1;
    for (int64_t key = 0; key <= tokens; ++key) {
      Pair pair = Pair::kNothing;
      if (key < tokens) {
        const bool seen = attention.seen.Sees(query, key);
        const bool asked = right.Sees(query, key);
        pair = seen ? (asked ? Pair::kAsAsked : Pair::kTooMany)
                    : (asked ? Pair::kMissing : Pair::kNothing);
      }
      if (pair == kind && begin < 0) begin = key;
      if (pair != kind && begin >= 0) {
        count += static_cast<size_t>(key - begin);
        absl::StrAppend(&path, "M", begin, " ", query, ".5h", key - begin);
        begin = -1;
      }
    }
  }
  return path;
}

struct Counts {
  size_t as_asked = 0;
  size_t too_many = 0;
  size_t missing = 0;
};

Counts CountsOf(const LayerAttention& attention, const Relation& right) {
  Counts counts;
  Strokes(attention, right, Pair::kAsAsked, counts.as_asked);
  Strokes(attention, right, Pair::kTooMany, counts.too_many);
  Strokes(attention, right, Pair::kMissing, counts.missing);
  return counts;
}

Markup Text(double x, double y, const char* anchor, const std::string& text) {
  return Element("text", {{"x", Number(x)}, {"y", Number(y)}, {"text-anchor", anchor}}, text);
}

// Names and borders of documents along both axes.
Markup Axes(const std::vector<int64_t>& documents, double scale) {
  Markup names;
  const PackedDocuments places(documents);
  std::string borders = absl::StrCat("M0 0H", kSize, "V", kSize, "H0Z");
  for (int64_t i = 0; i < places.count(); ++i) {
    const double begin = static_cast<double>(places.begin(i)) * scale;
    const double end = static_cast<double>(places.end(i)) * scale;
    if (i > 0)
      absl::StrAppend(&borders, "M", Number(begin), " 0V", kSize, "M0 ", Number(begin), "H", kSize);
    const std::string name = end - begin > 24 ? absl::StrCat("doc ", i) : absl::StrCat(i);
    names << Text((begin + end) / 2, kSize + 10, "middle", name)
          << Text(-4, (begin + end) / 2 + 2.5, "end", name);
  }
  return {Empty("path", {{"class", "border"}, {"stroke-width", "0.6"}, {"d", borders}}), names};
}

Markup Layer(const char* kind, const std::string& path, const std::string& mask) {
  if (path.empty()) return {};
  html::Attributes attributes = {{"class", kind}, {"d", path}};
  if (!mask.empty()) attributes.push_back({"mask", absl::StrCat("url(#", mask, ")")});
  return Empty("path", attributes);
}

// A mask that cuts stripes out of a path.
Markup Stripes(const std::string& id, const std::string& tokens) {
  const Markup pattern =
      Element("pattern",
              {{"id", id + "-stripes"},
               {"width", "5"},
               {"height", "5"},
               {"patternUnits", "userSpaceOnUse"},
               {"patternTransform", "rotate(45)"}},
              {Empty("rect", {{"width", "5"}, {"height", "5"}, {"fill", "#fff"}}),
               Empty("rect", {{"width", "1.6"}, {"height", "5"}, {"fill", "#000"}})});
  const Markup mask = Element("mask",
                              {{"id", id + "-mask"},
                               {"maskUnits", "userSpaceOnUse"},
                               {"x", "0"},
                               {"y", "0"},
                               {"width", tokens},
                               {"height", tokens}},
                              Empty("rect", {{"width", tokens},
                                             {"height", tokens},
                                             {"fill", absl::StrCat("url(#", id, "-stripes)")}}));
  return Element("defs", {pattern, mask});
}

int64_t EndOf(const std::vector<int64_t>& documents) { return PackedDocuments(documents).tokens(); }

}  // namespace

std::string LayersText(const std::vector<int64_t>& layers) {
  const bool neighbours = layers.size() > 2 &&
                          layers.back() - layers.front() + 1 == static_cast<int64_t>(layers.size());
  if (neighbours) return absl::StrCat(layers.front(), " to ", layers.back());
  return absl::StrJoin(layers, ", ");
}

Markup MaskPicture(const LayerAttention& attention, const std::vector<int64_t>& documents,
                   const std::string& id) {
  const PackedDocuments places(documents);
  const Relation right = RightRelation(places, attention.window);
  const std::string tokens = absl::StrCat(places.tokens());
  const double scale = kSize / static_cast<double>(std::max<int64_t>(1, places.tokens()));
  size_t unused = 0;
  const Markup pairs =
      Element("g", {{"transform", absl::StrCat("scale(", scale, ")")}},
              {Layer("sees", Strokes(attention, right, Pair::kAsAsked, unused), ""),
               Layer("leak", Strokes(attention, right, Pair::kTooMany, unused), id + "-mask"),
               Layer("missing", Strokes(attention, right, Pair::kMissing, unused), "")});
  return Element("svg",
                 {{"class", "mask"},
                  {"viewBox", absl::StrCat(-kMargin, " -2 ", kSize + kMargin + 2, " ", kSize + 18)},
                  {"role", "img"},
                  {"aria-label", MaskPictureText(attention, documents)}},
                 {Element("title", MaskPictureText(attention, documents)), Stripes(id, tokens),
                  pairs, Axes(documents, scale)});
}

std::string MaskPictureText(const LayerAttention& attention,
                            const std::vector<int64_t>& documents) {
  const PackedDocuments places(documents);
  const Counts counts = CountsOf(attention, RightRelation(places, attention.window));
  std::string text = absl::StrCat(attention.layers.size() == 1 ? "Layer " : "Layers ",
                                  LayersText(attention.layers), ": ");
  if (counts.too_many == 0 && counts.missing == 0) {
    absl::StrAppend(&text, "every token sees exactly ",
                    attention.window > 0
                        ? absl::StrCat("the last ", attention.window, " tokens of its document")
                        : std::string("its own document's past"),
                    ", as asked (", counts.as_asked, " pairs)");
    return text;
  }
  absl::StrAppend(&text, counts.as_asked, " pairs as asked, ", counts.too_many, " too many, ",
                  counts.missing, " missing");
  return text;
}

Markup ReachStrip(const ObservedReach& reach, const std::vector<int64_t>& documents) {
  const PackedDocuments places(documents);
  const double width = 900;
  const double unit = width / static_cast<double>(std::max<int64_t>(1, EndOf(documents)));
  Markup content = Element("title", ReachText(reach, documents));
  for (int64_t i = 0; i < places.count(); ++i) {
    const double x = static_cast<double>(places.begin(i)) * unit;
    const double end = static_cast<double>(places.end(i)) * unit;
    content << Empty("rect", {{"class", "token"},
                              {"x", Number(x + 1)},
                              {"y", "4"},
                              {"width", Number(end - x - 2)},
                              {"height", "22"}});
    content << Text((x + end) / 2, 42, "middle",
                    end - x > 40 ? absl::StrCat("doc ", i) : absl::StrCat(i));
  }
  std::string moved;
  for (const int64_t token : reach.moved)
    absl::StrAppend(&moved, "M", Number(static_cast<double>(token) * unit), " 8h",
                    Number(unit * 0.8), "v14h-", Number(unit * 0.8), "z");
  if (!moved.empty()) content << Empty("path", {{"class", "token-moved"}, {"d", moved}});
  const double at = (static_cast<double>(reach.position) + 0.5) * unit;
  content << Empty("path", {{"class", "token-changed"},
                            {"d", absl::StrCat("M", Number(at - 5), " 0h10l-5 8z")}});
  return Element("svg",
                 {{"class", "chart"},
                  {"viewBox", "0 0 900 48"},
                  {"role", "img"},
                  {"aria-label", ReachText(reach, documents)}},
                 content);
}

std::string ReachText(const ObservedReach& reach, const std::vector<int64_t>& documents) {
  const PackedDocuments places(documents);
  std::map<int64_t, int> moved;
  for (const int64_t token : reach.moved) ++moved[places.DocumentOf(token)];
  std::vector<std::string> parts;
  for (const auto& [document, count] : moved)
    parts.push_back(absl::StrCat(count, " in document ", document));
  return absl::StrCat("Changing ", places.Say(reach.position), " moved the log-probs of ",
                      parts.empty() ? "no token" : absl::StrJoin(parts, ", "));
}

}  // namespace bkm
