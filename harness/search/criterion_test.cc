// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/search/criterion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

const Verdict kOk = {.kind = VerdictKind::kOk, .stage = Stage::kGolden};
const Verdict kWrong = {
    .kind = VerdictKind::kWrong, .stage = Stage::kGolden, .reason = "log-probs-off"};
const Verdict kBroken = {.kind = VerdictKind::kBroken,
                         .stage = Stage::kImport,
                         .reason = "missing-module",
                         .blame = {"interface"}};
const Verdict kSpurious = {.kind = VerdictKind::kSpurious, .stage = Stage::kGolden};
const Verdict kUnsupported = {.kind = VerdictKind::kUnsupported, .stage = Stage::kBackend};

TEST(CriterionTest, OkIsGoodAndEveryVerdictAgainstThePairIsBad) {
  const Criterion criterion;
  EXPECT_EQ(criterion.SideOf(kOk, ""), Side::kGood);
  EXPECT_EQ(criterion.SideOf(kWrong, ""), Side::kBad);
  EXPECT_EQ(criterion.SideOf(kBroken, ""), Side::kBad);
}

TEST(CriterionTest, AVerdictThatSaysNothingIsNeither) {
  const Criterion criterion;
  EXPECT_EQ(criterion.SideOf(kSpurious, ""), Side::kNeither);
  EXPECT_EQ(criterion.SideOf(kUnsupported, ""), Side::kNeither);
  EXPECT_EQ(Criterion::Parse("stage=golden")->SideOf(kSpurious, ""), Side::kNeither);
}

TEST(CriterionTest, AllPatternsMustMatch) {
  const Criterion criterion = *Criterion::Parse("stage=golden,reason=log-*");
  EXPECT_EQ(criterion.SideOf(kWrong, ""), Side::kBad);
  EXPECT_EQ(criterion.SideOf(kOk, ""), Side::kGood);
  EXPECT_EQ(criterion.SideOf(kBroken, ""), Side::kGood);
  EXPECT_EQ(Criterion::Parse("blame=interface")->SideOf(kBroken, ""), Side::kBad);
}

TEST(CriterionTest, ByPatternOnlyTheGoodEndsSignatureIsGood) {
  const Criterion criterion = *Criterion::Parse("verdict=wrong");
  EXPECT_EQ(criterion.SideOf(kBroken, "broken at import, missing-module"), Side::kGood);
  EXPECT_EQ(criterion.SideOf(kOk, "broken at import, missing-module"), Side::kNeither);
}

TEST(CriterionTest, APatternMayNameWhatElseSaysNothing) {
  EXPECT_EQ(Criterion::Parse("verdict=unsupported")->SideOf(kUnsupported, ""), Side::kBad);
}

TEST(CriterionTest, MistakesAreNamed) {
  EXPECT_EQ(Criterion::Parse("golden").status().message(),
            "--until 'golden': write key=pattern, for example stage=golden");
  EXPECT_EQ(Criterion::Parse("reson=x").status().message(),
            "--until 'reson=x': unknown key 'reson': did you mean 'reason'? (known: verdict, "
            "stage, reason, message, blame)");
}

}  // namespace
}  // namespace bkm
