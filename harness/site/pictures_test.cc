// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/site/mask_picture.h"
#include "harness/site/testing_site.h"
#include "harness/site/token_plot.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

LayerAttention Right(int64_t window = 0) {
  return {.layers = {0},
          .seen = RightRelation(PackedDocuments(std::vector<int64_t>{2, 1}), window)};
}

TEST(MaskPictureTest, WhatIsAsAskedIsOneKindOfStroke) {
  const std::string svg = MaskPicture(Right(), {2, 1}, "m").html();
  EXPECT_THAT(svg, HasSubstr("<path class=\"sees\" d=\"M0 0.5h1M0 1.5h2M2 2.5h1\"></path>"));
  EXPECT_THAT(svg, Not(HasSubstr("class=\"leak\"")));
  EXPECT_THAT(svg, Not(HasSubstr("class=\"missing\"")));
  EXPECT_EQ(MaskPictureText(Right(), {2, 1}),
            "Layer 0: every token sees exactly its own document's past, as asked (4 pairs)");
}

TEST(MaskPictureTest, LeakAndGapAreOtherStrokesAndStriped) {
  LayerAttention wrong = Right();
  wrong.layers = {0, 1, 2};
  wrong.seen.Set(2, 0, true);
  wrong.seen.Set(2, 1, true);
  wrong.seen.Set(1, 0, false);
  const std::string svg = MaskPicture(wrong, {2, 1}, "m").html();
  EXPECT_THAT(svg, HasSubstr("<path class=\"leak\" d=\"M0 2.5h2\" mask=\"url(#m-mask)\">"));
  EXPECT_THAT(svg, HasSubstr("<path class=\"missing\" d=\"M0 1.5h1\">"));
  EXPECT_EQ(MaskPictureText(wrong, {2, 1}),
            "Layers 0 to 2: 3 pairs as asked, 2 too many, 1 missing");
}

TEST(MaskPictureTest, AWindowIsPartOfWhatIsAsked) {
  EXPECT_EQ(MaskPictureText({.layers = {0, 2}, .seen = Right(1).seen, .window = 1}, {2, 1}),
            "Layers 0, 2: every token sees exactly the last 1 tokens of its document, as asked (3 "
            "pairs)");
}

TEST(ReachTest, TellsWhichDocumentsMoved) {
  const ObservedReach reach{.position = 1, .moved = {1, 2}, .largest = {1, 1}};
  EXPECT_EQ(
      ReachText(reach, {2, 1}),
      "Changing token 1 (document 0, position 1) moved the log-probs of 1 in document 0, 1 in "
      "document 1");
  EXPECT_THAT(ReachStrip(reach, {2, 1}).html(), HasSubstr("class=\"token-moved\""));
}

TEST(TokenPlotTest, WhatIsAboveTheLimitIsACrossAndNoDot) {
  const TokenErrors errors{.step = 1,
                           .documents = {3},
                           .tokens = {{0, 0.01}, {1, 0.3}, {2, std::nan("")}},
                           .floor_max = 0.05};
  const std::string svg = TokenPlot(errors, 4).html();
  const auto count = [&](const std::string& what) {
    size_t found = 0;
    for (size_t at = svg.find(what); at != std::string::npos; at = svg.find(what, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("h0"), 1u);
  EXPECT_EQ(count("m-2.6-2.6"), 2u);
  EXPECT_EQ(TokenPlotText(errors, 4),
            "Step 2: 3 tokens; the largest error is not finite; 2 above the limit of 4 floors");
}

TEST(TokenPlotTest, ErrorsOfZeroAreDrawnAtTheBottom) {
  const TokenErrors errors{.documents = {2}, .tokens = {{0, 0}, {1, 0.02}}, .floor_max = 0.05};
  EXPECT_EQ(TokenPlotText(errors, 4),
            "Step 1: 2 tokens; the largest error is 0.02 nats, 0.4 times the noise floor of 0.05; "
            "none above the limit of 4 floors");
  EXPECT_THAT(TokenPlot(errors, 4).html(), Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace bkm
