// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/selftest/fault_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

Cell Planted(const char* fault, const char* attention) {
  Cell cell;
  cell.engine = "torchtitan";
  cell.runtime = "cpu";
  cell.probe.attention = attention;
  cell.plant = {fault};
  return cell;
}

bool Selects(const FaultSelection& selection, const Cell& cell) {
  const auto filters = FiltersOf(selection, {});
  EXPECT_TRUE(filters.ok()) << filters.status();
  for (const CellFilter& filter : *filters) {
    if (filter.Matches(cell)) return true;
  }
  return false;
}

TEST(FaultSelectionTest, PatternsOfOneListAreAlternativesAndListsMustAllMatch) {
  const FaultSelection selection{.faults = {"mask-*", "rope-*"}, .attentions = {"flex"}};
  EXPECT_THAT(*FiltersOf(selection, {}), SizeIs(2));
  EXPECT_TRUE(Selects(selection, Planted("mask-leak", "flex")));
  EXPECT_TRUE(Selects(selection, Planted("rope-shift", "flex")));
  EXPECT_FALSE(Selects(selection, Planted("mask-leak", "varlen")));
  EXPECT_FALSE(Selects(selection, Planted("loss-scale", "flex")));
}

TEST(FaultSelectionTest, WithoutPatternsTheSmokeTestRunsUnlessAllIsAsked) {
  Catalogue catalogue;
  catalogue.smoke.push_back(*CellFilter::Parse("plant=a"));
  EXPECT_THAT(*FiltersOf({}, catalogue), SizeIs(1));
  EXPECT_THAT(*FiltersOf({.all = true}, catalogue), IsEmpty());
}

TEST(FaultSelectionTest, OnlyAllWithoutPatternsIsWhole) {
  EXPECT_TRUE((FaultSelection{.all = true}.whole()));
  EXPECT_FALSE((FaultSelection{.models = {"qwen3"}, .all = true}.whole()));
  EXPECT_FALSE(FaultSelection{}.whole());
}

}  // namespace
}  // namespace bkm
