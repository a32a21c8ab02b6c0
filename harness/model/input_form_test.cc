// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/input_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(InputFormTest, WordsHaveOneOrder) {
  EXPECT_EQ(*InputFormOf("packed"), "packed");
  EXPECT_EQ(*InputFormOf("packed+mask+rows"), "packed+rows+mask");
  EXPECT_EQ(*InputFormOf("padded+left"), "padded+left");
  EXPECT_THAT(WordsBesidePacked("packed+rows+mask"), ElementsAre("rows", "mask"));
  EXPECT_THAT(WordsBesidePacked("padded+left"), ElementsAre("padded", "left"));
  EXPECT_THAT(WordsBesidePacked("packed"), IsEmpty());
}

TEST(InputFormTest, WhatDoesNotGoTogetherIsNamed) {
  const auto error = [](absl::string_view text) {
    return std::string(InputFormOf(text).status().message());
  };
  EXPECT_EQ(error("ragged"), "'ragged' is neither packed nor padded, which comes first");
  EXPECT_EQ(error(""), "'' is neither packed nor padded, which comes first");
  EXPECT_EQ(error("tail+packed"), "'tail' is neither packed nor padded, which comes first");
  EXPECT_THAT(error("packed+left"), HasSubstr("'left' does not go with packed or stands twice"));
  EXPECT_THAT(error("packed+tial"), HasSubstr("did you mean 'tail'?"));
  EXPECT_THAT(error("packed+tail+tail"), HasSubstr("'tail' does not go with packed"));
  EXPECT_THAT(error("packed+padded"), HasSubstr("'padded' does not go with packed"));
}

}  // namespace
}  // namespace bkm
