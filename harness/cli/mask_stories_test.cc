// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// How torchtitan passed attention masks between caller and model over time, and what it did with a
// mask that it does not support or does not receive, on the real code. Needs the mirrors
// ($BKM_GIT_MIRRORS) and the package registry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "harness/base/json.h"
#include "harness/testing/real_run.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The distinct values of one field of the masks that reached the layers.
std::set<std::string> OfMasks(const Json& observation, const char* field) {
  std::set<std::string> values;
  for (const Json& call : observation["mask"]["calls"]) values.insert(call.value(field, "none"));
  return values;
}

// torchtitan 6a3a9da (#1776, 2025-10-09) made the mask an argument of the model; until then
// init_attention_mask left it in a class variable of the attention.
class MaskOwnerTest : public SharedRunTest<MaskOwnerTest> {
 public:
  static absl::StatusOr<RealRun> MakeRun() {
    return RealRun::Make(
        {"--engine", "torchtitan", "--library", "git:torchtitan@6a3a9da~1,git:torchtitan@6a3a9da",
         "--attention", "flex,sdpa", "--model", "llama3"},
        "mask-owner");
  }

 protected:
  static RealRun::Fields Flex(const char* library) {
    return {{"library_label", library}, {"attention", "flex"}};
  }
  static RealRun::Fields Sdpa(const char* library) {
    return {{"library_label", library}, {"attention", "sdpa"}};
  }
  static Json Seen(const char* library) { return run().FileOf(Flex(library), "observation.json"); }
};

TEST_F(MaskOwnerTest, MaskMovesFromAClassToTheCallerAndStaysTheSame) {
  const Json before = Seen("6a3a9da~1"), after = Seen("6a3a9da");
  EXPECT_THAT(OfMasks(before, "owner"), ElementsAre("torchtitan.models.attention.FlexAttention"));
  EXPECT_THAT(OfMasks(after, "owner"), ElementsAre("caller"));
  EXPECT_THAT(OfMasks(before, "type"), ElementsAre("BlockMask"));
  EXPECT_THAT(OfMasks(after, "type"), ElementsAre("BlockMask"));
  EXPECT_EQ(OfMasks(before, "digest"), OfMasks(after, "digest"));
  EXPECT_EQ(before["mask"]["attended"], after["mask"]["attended"]);
  EXPECT_EQ(before["mask"]["attended"].size(), 6u);
}

TEST_F(MaskOwnerTest, BothSidesAreRight) {
  EXPECT_EQ(run().VerdictOf(Flex("6a3a9da~1")), "ok at golden");
  EXPECT_EQ(run().VerdictOf(Flex("6a3a9da")), "ok at golden");
}

TEST_F(MaskOwnerTest, SdpaIsRefusedBeforeAndOnlyAssertedAfterwards) {
  EXPECT_EQ(run().ReasonOf(Sdpa("6a3a9da~1")), "refused at construct, refused-option");
  EXPECT_EQ(run().ReasonOf(Sdpa("6a3a9da")), "broken at forward, assertion");
}

// The control passes sdpa a mask for packed documents.
class SdpaTest : public SharedRunTest<SdpaTest> {
 public:
  static absl::StatusOr<RealRun> MakeRun() {
    return RealRun::Make(
        {"--engine", "torchtitan", "--library",
         "pypi:torchtitan==0.2.2,git:torchtitan@c1465542e,git:torchtitan@261819688,"
         "git:torchtitan@baba6d82e,git:torchtitan@1695457~1,git:torchtitan@1695457",
         "--attention", "sdpa"},
        "sdpa-on-packed");
  }

 protected:
  static std::string On(const char* library) {
    return run().ReasonOf({{"library_label", library}});
  }
};

TEST_F(SdpaTest, IsAssertedThenSwallowsTheMaskThenIsRefused) {
  EXPECT_EQ(On("0.2.2"), "broken at forward, assertion");
  EXPECT_EQ(On("c1465542e"), "broken at forward, assertion");
  EXPECT_EQ(On("261819688"), "wrong at mask, mask-leak");
  EXPECT_EQ(On("baba6d82e"), "wrong at mask, mask-leak");
  EXPECT_EQ(On("1695457~1"), "wrong at mask, mask-leak");
  EXPECT_EQ(On("1695457"), "refused at construct, refused-option");
}

TEST_F(SdpaTest, TheMaskReachesTheLayersAndTheKernelDoesNotKeepToIt) {
  const RealRun::Fields fields = {{"library_label", "baba6d82e"}};
  const Json seen = run().FileOf(fields, "observation.json");
  EXPECT_THAT(OfMasks(seen, "type"), ElementsAre("BlockMask"));
  EXPECT_NE(seen["mask"]["attended"][0]["relation"], seen["mask"]["calls"][0]["digest"]);
  EXPECT_THAT(run().Cell(fields)["message"].get<std::string>(),
              HasSubstr("documents see each other in every layer: token 37 (document 1, position "
                        "0) sees token 36 (document 0, position 36)"));
}

// The control passes no mask.
class FlexWithoutMaskTest : public SharedRunTest<FlexWithoutMaskTest> {
 public:
  static absl::StatusOr<RealRun> MakeRun() {
    return RealRun::Make(
        {"--engine", "torchtitan", "--library",
         "git:torchtitan@7c8fc3f~1,git:torchtitan@7c8fc3f,git:torchtitan@baba6d82e,"
         "git:torchtitan@1695457~1,git:torchtitan@1695457",
         "--attention", "flex", "--engine-option", "mask=\"none\""},
        "flex-without-mask");
  }

 protected:
  static std::string On(const char* library) {
    return run().ReasonOf({{"library_label", library}});
  }
};

TEST_F(FlexWithoutMaskTest, SeesEverythingBetweenTwoAssertions) {
  EXPECT_EQ(On("7c8fc3f~1"), "broken at forward, assertion");
  EXPECT_EQ(On("7c8fc3f"), "wrong at mask, mask-missing");
  EXPECT_EQ(On("baba6d82e"), "wrong at mask, mask-missing");
  EXPECT_EQ(On("1695457~1"), "wrong at mask, mask-missing");
  EXPECT_EQ(On("1695457"), "broken at forward, assertion");
  EXPECT_THAT(run().Cell({{"library_label", "7c8fc3f"}})["message"].get<std::string>(),
              HasSubstr("no mask reached the layers, and everything sees everything in every "
                        "layer"));
}

}  // namespace
}  // namespace bkm
