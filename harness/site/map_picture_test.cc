// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/map_picture.h"

#include <gmock/gmock.h>

#include "harness/apicheck/testing_map.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MapPictureTest, MarksBandsRunsReleasesAndMonthsForLightAndDark) {
  const std::string svg = ToSvg(ASmallMap());
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(svg, HasSubstr("works: l2 (2026-03-01) to l2 (2026-03-01)"));
  EXPECT_THAT(svg, HasSubstr("<title>v1 (2026-02-02) x l2 (2026-03-01): ok at golden </title>"));
  EXPECT_THAT(svg, HasSubstr(">v0</text>"));
  EXPECT_THAT(svg, HasSubstr(">2026-02</text>"));
}

TEST(MapPictureTest, TakesItsStyleFromThePageThatItIsIn) {
  EXPECT_THAT(ToSvg(ASmallMap(), SvgUse::kInPage), Not(HasSubstr("<style>")));
}

}  // namespace
}  // namespace bkm
