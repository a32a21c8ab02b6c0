// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/token_plot.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace bkm {
namespace {

using html::Element;
using html::Empty;
using html::Markup;
using html::Number;

constexpr double kPlotWidth = 900;
constexpr double kPlotHeight = 250;
constexpr double kPlotLeft = 62;
constexpr double kPlotRight = 118;  // room for the names of the lines
constexpr double kPlotTop = 14;
constexpr double kPlotBottom = 40;
constexpr double kLeast = 1e-12;  // an error of 0 is drawn at the bottom

class Plot {
 public:
  Plot(const TokenErrors& errors, double allowed)
      : errors_(errors), limit_(allowed * errors.floor_max), allowed_(allowed) {
    double low = errors.floor_max;
    double high = limit_;
    for (const TokenErrors::Token& token : errors.tokens) {
      if (!std::isfinite(token.error) || token.error <= kLeast) continue;
      low = std::min(low, token.error);
      high = std::max(high, token.error);
    }
    // Show at most three decades below the floor.
    low = std::max({low, errors.floor_max / 1000, kLeast});
    low_ = std::floor(std::log10(low));
    high_ = std::ceil(std::log10(std::max(high, low * 10)) + 0.02);
    for (const int64_t length : errors.documents) tokens_ += static_cast<double>(length);
  }

  Markup Draw() const {
    Markup content;
    content << Element("title", TokenPlotText(errors_, allowed_));
    DrawDecades(content);
    DrawDocuments(content);
    DrawLine(content, errors_.floor_max, "floor", "noise floor");
    DrawLine(content, limit_, "limit", absl::StrFormat("%.0f floors: limit", allowed_));
    DrawTokens(content);
    return Element("svg",
                   {{"class", "chart"},
                    {"viewBox", absl::StrCat("0 0 ", Number(kPlotWidth), " ", Number(kPlotHeight))},
                    {"role", "img"},
                    {"aria-label", TokenPlotText(errors_, allowed_)}},
                   content);
  }

 private:
  double X(double position) const {
    return kPlotLeft +
           (kPlotWidth - kPlotLeft - kPlotRight) * (position + 0.5) / std::max(1.0, tokens_);
  }
  double Y(double error) const {
    const double log = std::isfinite(error) ? std::log10(std::max(error, kLeast)) : high_;
    const double share = std::clamp((log - low_) / (high_ - low_), 0.0, 1.0);
    return kPlotHeight - kPlotBottom - (kPlotHeight - kPlotTop - kPlotBottom) * share;
  }

  static Markup Text(double x, double y, const char* anchor, const char* kind,
                     const std::string& text) {
    return Element("text",
                   {{"x", Number(x)}, {"y", Number(y)}, {"text-anchor", anchor}, {"class", kind}},
                   text);
  }

  void DrawDecades(Markup& content) const {
    const int every = high_ - low_ > 6 ? 2 : 1;
    for (int decade = static_cast<int>(low_); decade <= high_; decade += every) {
      const double y = Y(std::pow(10, decade));
      content << Empty("path", {{"class", "grid"},
                                {"d", absl::StrCat("M", Number(kPlotLeft), " ", Number(y), "H",
                                                   Number(kPlotWidth - kPlotRight))}});
      const std::string label = decade >= -3 && decade <= 2
                                    ? absl::StrFormat("%g", std::pow(10, decade))
                                    : absl::StrCat("1e", decade);
      content << Text(kPlotLeft - 8, y + 4, "end", "", label);
    }
    content << Element(
        "text",
        {{"x", "14"},
         {"y", Number(kPlotHeight / 2)},
         {"text-anchor", "middle"},
         {"transform", absl::StrCat("rotate(-90 14 ", Number(kPlotHeight / 2), ")")}},
        "error, nats");
  }

  void DrawDocuments(Markup& content) const {
    double at = 0;
    for (size_t i = 0; i < errors_.documents.size(); ++i) {
      const double length = static_cast<double>(errors_.documents[i]);
      if (i > 0) {
        content << Empty("path",
                         {{"class", "border"},
                          {"stroke-dasharray", "1 3"},
                          {"d", absl::StrCat("M", Number(X(at - 0.5)), " ", Number(kPlotTop), "V",
                                             Number(kPlotHeight - kPlotBottom))}});
      }
      const bool room = X(at + length) - X(at) > 34;
      content << Text(X(at + length / 2 - 0.5), kPlotHeight - kPlotBottom + 16, "middle", "",
                      room ? absl::StrCat("doc ", i) : absl::StrCat(i));
      at += length;
    }
    content << Text((kPlotLeft + kPlotWidth - kPlotRight) / 2, kPlotHeight - 6, "middle", "",
                    "token in the packed batch");
  }

  void DrawLine(Markup& content, double error, const char* kind, const std::string& name) const {
    content << Empty("path", {{"class", kind},
                              {"d", absl::StrCat("M", Number(kPlotLeft), " ", Number(Y(error)), "H",
                                                 Number(kPlotWidth - kPlotRight))}});
    content << Text(kPlotWidth - kPlotRight + 6, Y(error) + 4, "start", "strong", name);
  }

  void DrawTokens(Markup& content) const {
    std::string dots;
    std::string crosses;
    for (const TokenErrors::Token& token : errors_.tokens) {
      const std::string x = Number(X(static_cast<double>(token.position)));
      const std::string y = Number(Y(token.error));
      const bool fits = token.error <= limit_;  // false for NaN
      fits ? absl::StrAppend(&dots, "M", x, " ", y, "h0")
           : absl::StrAppend(&crosses, "M", x, " ", y, "m-2.6-2.6l5.2 5.2m0-5.2l-5.2 5.2");
    }
    if (!dots.empty()) content << Empty("path", {{"class", "dots"}, {"d", dots}});
    if (!crosses.empty()) content << Empty("path", {{"class", "far"}, {"d", crosses}});
  }

  const TokenErrors& errors_;
  const double limit_;
  const double allowed_;
  double low_ = 0;  // powers of ten
  double high_ = 0;
  double tokens_ = 0;
};

}  // namespace

Markup TokenPlot(const TokenErrors& errors, double allowed) { return Plot(errors, allowed).Draw(); }

std::string TokenPlotText(const TokenErrors& errors, double allowed) {
  double largest = 0;
  size_t far = 0;
  bool finite = true;
  for (const TokenErrors::Token& token : errors.tokens) {
    finite = finite && std::isfinite(token.error);
    largest = std::max(largest, token.error);
    far += !(token.error <= allowed * errors.floor_max);
  }
  return absl::StrCat(
      "Step ", errors.step + 1, ": ", errors.tokens.size(), " tokens; the largest error is ",
      finite
          ? absl::StrFormat("%.3g nats, %.2g times the noise floor of %.3g", largest,
                            errors.floor_max > 0 ? largest / errors.floor_max : 0, errors.floor_max)
          : std::string("not finite"),
      "; ", far == 0 ? std::string("none") : absl::StrCat(far),
      absl::StrFormat(" above the limit of %.0f floors", allowed));
}

}  // namespace bkm
