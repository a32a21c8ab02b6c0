// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/selftest/selftest_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using ::testing::ElementsAre;

PlannedCell Pairing(const char* engine, const char* attention) {
  Cell cell;
  cell.engine = engine;
  cell.runtime = "cpu";
  cell.probe.attention = attention;
  return {.cell = cell, .id = CellId(cell)};
}

CatalogueFault Fault(const char* id) { return {.id = id, .caught_by = {{}}}; }

std::vector<std::string> Names(const SelftestPlan& plan) {
  std::vector<std::string> names;
  for (const PlannedCell& planned : plan.cells) {
    const Cell& cell = planned.cell;
    names.push_back(cell.engine + " " + cell.probe.attention + " " +
                    (cell.plant.empty() ? "-" : cell.plant[0]) +
                    (cell.probe.steps == Probe().steps ? "" : " steps"));
  }
  return names;
}

TEST(SelftestPlanTest, EveryFaultIsPlantedWhereItExistsAfterAFaultFreeCell) {
  Catalogue catalogue{.faults = {Fault("a"), Fault("b")}};
  catalogue.faults[1].where.attentions = {"varlen"};
  const SelftestPlan plan = *PlanSelftest(
      catalogue, {Pairing("torchtitan", "flex"), Pairing("torchtitan", "varlen")}, {});
  EXPECT_THAT(Names(plan),
              ElementsAre("torchtitan flex -", "torchtitan flex a", "torchtitan varlen -",
                          "torchtitan varlen a", "torchtitan varlen b"));
}

TEST(SelftestPlanTest, OnlyFaultsOfTrainersArePlantedInTheCellOfATrainer) {
  Catalogue catalogue{.faults = {Fault("a"), Fault("data")}};
  catalogue.faults[1].where.drives = {"trainer"};
  PlannedCell driven = Pairing("verl-fsdp", "sdpa");
  driven.cell.probe.drive = "trainer";
  const SelftestPlan plan =
      *PlanSelftest(catalogue, {Pairing("verl-fsdp", "flex_attention"), driven}, {});
  EXPECT_THAT(Names(plan), ElementsAre("verl-fsdp flex_attention -", "verl-fsdp flex_attention a",
                                       "verl-fsdp sdpa -", "verl-fsdp sdpa data"));
}

TEST(SelftestPlanTest, APlantedCellIsNeverConfusedWithAPlainOne) {
  const Catalogue catalogue{.faults = {Fault("a")}};
  const SelftestPlan plan = *PlanSelftest(catalogue, {Pairing("torchtitan", "flex")}, {});
  ASSERT_EQ(plan.cells.size(), 2u);
  EXPECT_EQ(plan.cells[1].id, plan.cells[0].id + ",plant=a");
  EXPECT_EQ(plan.faults.at(plan.cells[1].id), &catalogue.faults[0]);
  EXPECT_FALSE(plan.faults.contains(plan.cells[0].id));
}

TEST(SelftestPlanTest, AFaultThatNeedsAnotherProbeHasItsOwnFaultFreeCell) {
  Catalogue catalogue{.faults = {Fault("a"), Fault("b")}};
  catalogue.faults[1].probe = {{"steps", 2}};
  const SelftestPlan plan = *PlanSelftest(catalogue, {Pairing("torchtitan", "flex")}, {});
  EXPECT_THAT(Names(plan), ElementsAre("torchtitan flex -", "torchtitan flex a",
                                       "torchtitan flex - steps", "torchtitan flex b steps"));
}

TEST(SelftestPlanTest, AWarmUpFollowsTheEnginesOwnSchedule) {
  Catalogue catalogue{.faults = {Fault("a")}};
  catalogue.faults[0].probe = {{"optimizer", {{"warmup_steps", 2}}}};
  const SelftestPlan plan = *PlanSelftest(
      catalogue, {Pairing("torchtitan", "flex"), Pairing("transformers", "eager")}, {});
  ASSERT_EQ(plan.cells.size(), 4u);
  EXPECT_EQ(plan.cells[1].cell.probe.optimizer.schedule, "one-based");
  EXPECT_EQ(plan.cells[3].cell.probe.optimizer.schedule, "zero-based");
}

TEST(SelftestPlanTest, FaultsThatNoCheckCanSeeArePlantedToo) {
  Catalogue catalogue{.faults = {Fault("a"), Fault("b")}};
  catalogue.faults[0].invisible = {{{.attentions = {"varlen"}}, "mathematics"}};
  catalogue.faults[1].thin = {{{.attentions = {"varlen"}}, "near the floor"}};
  const SelftestPlan plan = *PlanSelftest(catalogue, {Pairing("torchtitan", "varlen")}, {});
  EXPECT_THAT(Names(plan),
              ElementsAre("torchtitan varlen -", "torchtitan varlen a", "torchtitan varlen b"));
}

TEST(SelftestPlanTest, FiltersChooseAmongPlantedCells) {
  const Catalogue catalogue{.faults = {Fault("mask-a"), Fault("b")}};
  const SelftestPlan plan =
      *PlanSelftest(catalogue, {Pairing("torchtitan", "flex"), Pairing("torchtitan", "varlen")},
                    {*CellFilter::Parse("plant=mask-*,attention=varlen")});
  EXPECT_THAT(Names(plan), ElementsAre("torchtitan varlen -", "torchtitan varlen mask-a"));
}

TEST(SelftestPlanTest, PairingsThatAreOutStayOut) {
  PlannedCell out = Pairing("torchtitan", "flex");
  out.included = false;
  EXPECT_TRUE(PlanSelftest({.faults = {Fault("a")}}, {out}, {})->cells.empty());
}

}  // namespace
}  // namespace bkm
