// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/map_picture.h"

#include <gmock/gmock.h>

namespace bkm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ApiMap Small() {
  ApiMap map{.engine_kind = "verl-torchtitan",
             .engine_source = "verl",
             .library_source = "torchtitan",
             .since = "2026-02-01",
             .attention = "flex",
             .model = "qwen3",
             .engines = {{"e1", "2026-02-01", "a <b>", ""}, {"e2", "2026-02-02", "b", "v1"}},
             .libraries = {{"l1", "2026-02-01", "", "v0"}, {"l2", "2026-03-01", "", ""}},
             .plane = {{PairGrade::kImport, PairGrade::kNothing},
                       {PairGrade::kImport, PairGrade::kNothing}}};
  map.cells[{1, 1}] = {.point = {1, 1}, .verdict = "ok", .stage = "golden", .id = "x"};
  return map;
}

TEST(MapPictureTest, MarksBandsRunsReleasesAndMonthsForLightAndDark) {
  const std::string svg = ToSvg(Small());
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(svg, HasSubstr("works: l2 (2026-03-01) to l2 (2026-03-01)"));
  EXPECT_THAT(svg, HasSubstr("<title>v1 (2026-02-02) x l2 (2026-03-01): ok at golden </title>"));
  EXPECT_THAT(svg, HasSubstr(">v0</text>"));
  EXPECT_THAT(svg, HasSubstr(">2026-02</text>"));
}

TEST(MapPictureTest, TakesItsStyleFromThePageThatItIsIn) {
  EXPECT_THAT(ToSvg(Small(), SvgUse::kInPage), Not(HasSubstr("<style>")));
}

}  // namespace
}  // namespace bkm
