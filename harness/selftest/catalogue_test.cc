// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/selftest/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace bkm {
namespace {

Json Fault() {
  return {{"id", "a"},
          {"kind", "exact"},
          {"breaks", "It breaks."},
          {"where", {{"engines", {"torchtitan"}}}},
          {"caught_by",
           {{{"where", {{"attentions", {"flex"}}}}, {"stage", "mask"}, {"reasons", {"mask-leak"}}},
            {{"stage", "golden"}, {"reasons", {"log-probs-off"}}}}},
          {"invisible", {{{"where", {{"attentions", {"varlen"}}}}, {"why", "mathematics"}}}}};
}

absl::StatusOr<Catalogue> Parse(Json fault) {
  return CatalogueFromJson({{"schema", 1}, {"faults", {std::move(fault)}}}, "c.json");
}

Cell CellOf(const char* engine, const char* attention) {
  Cell cell;
  cell.engine = engine;
  cell.probe.attention = attention;
  return cell;
}

TEST(CatalogueTest, ListsWhereAFaultExistsWhatCatchesItAndWhereNothingCan) {
  const CatalogueFault fault = Parse(Fault())->faults[0];
  EXPECT_TRUE(fault.where.Has(CellOf("torchtitan", "flex")));
  EXPECT_FALSE(fault.where.Has(CellOf("transformers", "flex_attention")));
  EXPECT_EQ(fault.ExpectationFor(CellOf("torchtitan", "flex"))->stage, Stage::kMask);
  EXPECT_EQ(fault.ExpectationFor(CellOf("torchtitan", "sdpa"))->stage, Stage::kGolden);
  EXPECT_EQ(fault.InvisibleIn(CellOf("torchtitan", "varlen"))->why, "mathematics");
  EXPECT_EQ(fault.InvisibleIn(CellOf("torchtitan", "flex")), nullptr);
  EXPECT_EQ(fault.ThinIn(CellOf("torchtitan", "varlen")), nullptr);
}

TEST(CatalogueTest, ANumericFaultMayHaveAThinMarginAndAPredictedAnswer) {
  Json json = Fault();
  json["thin"] = {{{"where", {{"attentions", {"flex"}}}}, {"why", "near the floor"}}};
  EXPECT_EQ(Parse(json).status().message(),
            "c.json: $.faults[0].thin: only a numeric fault has a margin");
  json["kind"] = "numeric";
  json["answer"] = "no-rope";
  const CatalogueFault fault = Parse(json)->faults[0];
  EXPECT_EQ(fault.ThinIn(CellOf("torchtitan", "flex"))->why, "near the floor");
  EXPECT_EQ(fault.ThinIn(CellOf("torchtitan", "varlen")), nullptr);
  EXPECT_EQ(fault.answer, "no-rope");
  json["kind"] = "exact";
  json.erase("thin");
  EXPECT_EQ(Parse(json).status().message(),
            "c.json: $.faults[0].answer: only a numeric fault gives another answer");
}

TEST(CatalogueTest, UnknownNamesAreRefusedWithTheirPlace) {
  Json fault = Fault();
  fault["caught_by"][0]["reasons"] = {"mask-leek"};
  EXPECT_EQ(Parse(fault).status().message(),
            "c.json: $.faults[0].caught_by[0].reasons: unknown name 'mask-leek': did you mean "
            "'mask-leak'?");
  fault = Fault();
  fault["where"]["engines"] = {"torchtitans"};
  EXPECT_EQ(Parse(fault).status().message(),
            "c.json: $.faults[0].where.engines: unknown name 'torchtitans': did you mean "
            "'torchtitan'?");
}

TEST(CatalogueTest, AFaultNeedsACheckThatCatchesItAndAHarmlessOneHasNone) {
  Json fault = Fault();
  fault.erase("caught_by");
  EXPECT_FALSE(Parse(fault).ok());
  fault["kind"] = "harmless";
  EXPECT_EQ(Parse(fault).status().message(),
            "c.json: $.faults[0].invisible: a harmless fault must be ok everywhere");
  fault.erase("invisible");
  EXPECT_TRUE(Parse(fault).ok());
}

TEST(CatalogueTest, AFaultThatNamesNoModelsHasThoseOfTheCatalogue) {
  Json named = Fault();
  named["id"] = "b";
  named["where"]["models"] = {"gpt_oss"};
  const Catalogue catalogue = *CatalogueFromJson(
      {{"schema", 1}, {"models", {"qwen3"}}, {"faults", {Fault(), named}}}, "c.json");
  EXPECT_EQ(catalogue.faults[0].where.models, std::vector<std::string>{"qwen3"});
  EXPECT_EQ(catalogue.faults[1].where.models, std::vector<std::string>{"gpt_oss"});
}

TEST(CatalogueTest, IdsAreUnique) {
  EXPECT_EQ(CatalogueFromJson({{"schema", 1}, {"faults", {Fault(), Fault()}}}, "c.json")
                .status()
                .message(),
            "c.json: $.faults[1].id: 'a' is listed twice");
}

TEST(CatalogueTest, TheCommittedOneHasAtLeastThirtyFaultsAndASmokeSubset) {
  const absl::StatusOr<Catalogue> catalogue = ReadCatalogue("harness/selftest/catalogue.json");
  ASSERT_TRUE(catalogue.ok()) << catalogue.status();
  EXPECT_GE(std::count_if(catalogue->faults.begin(), catalogue->faults.end(),
                          [](const CatalogueFault& fault) { return !fault.is_harmless; }),
            30);
  EXPECT_FALSE(catalogue->smoke.empty());
}

TEST(CatalogueTest, TheHarmlessOneHasNothingThatACheckMustCatch) {
  const absl::StatusOr<Catalogue> catalogue = ReadCatalogue("harness/selftest/harmless.json");
  ASSERT_TRUE(catalogue.ok()) << catalogue.status();
  EXPECT_GE(catalogue->faults.size(), 15u);
  for (const CatalogueFault& fault : catalogue->faults) EXPECT_TRUE(fault.is_harmless) << fault.id;
  EXPECT_FALSE(catalogue->smoke.empty());
}

TEST(CatalogueTest, AFaultCanBeCaughtForAnotherReasonOnAGpu) {
  const absl::StatusOr<Json> json = ReadJsonFile("harness/selftest/catalogue.json");
  ASSERT_TRUE(json.ok()) << json.status();
  const absl::StatusOr<Catalogue> catalogue = CatalogueFromJson(*json, "c");
  ASSERT_TRUE(catalogue.ok()) << catalogue.status();
  const auto fault = std::find_if(catalogue->faults.begin(), catalogue->faults.end(),
                                  [](const auto& f) { return f.id == "varlen-max-too-small"; });
  ASSERT_NE(fault, catalogue->faults.end());
  Cell cell = CellOf("torchtitan", "varlen");
  EXPECT_EQ(fault->ExpectationFor(cell)->reasons, std::vector<std::string>{"kernel-arguments"});
  cell.probe.device = "cuda";
  EXPECT_EQ(fault->ExpectationFor(cell)->reasons, std::vector<std::string>{"mask-short"});
}

}  // namespace
}  // namespace bkm
