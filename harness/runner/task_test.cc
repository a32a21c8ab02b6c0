// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/task.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

TEST(TaskTest, WorkerIsNoPartOfTheKey) {
  PreparedCell cell;
  cell.record.cell.engine = "torchtitan";
  const Json plain = MakeRequest(cell, "dir", {});
  cell.worker = {.python = "/elsewhere/python", .alone = true, .bytecode = "/cache/x"};
  EXPECT_EQ(MakeRequest(cell, "dir", {})["key"], plain["key"]);
}

TEST(TaskTest, ALimitOnProcessorTimeIsPassedOnOnlyIfAMatrixSetsOne) {
  PreparedCell cell;
  cell.record.cell.engine = "torchtitan";
  EXPECT_FALSE(MakeRequest(cell, "dir", {})["limits"].contains("cpu_s"));
  TaskSettings settings;
  settings.limits.cpu_s = 7;
  EXPECT_EQ(MakeRequest(cell, "dir", settings)["limits"]["cpu_s"], 7);
}

TEST(TaskTest, TheWorkerPlantsOnlyFaultsOfTheCatalogue) {
  PreparedCell cell;
  cell.record.cell.engine = "torchtitan";
  const Json plain = MakeRequest(cell, "dir", {});
  cell.record.cell.plant = {"mask-dropped", "record-lines",
                            "mutant:library/m.py:1:wrong-axis:1a2b"};
  const Json planted = MakeRequest(cell, "dir", {});
  EXPECT_EQ(planted["plant"], Json::array({"mask-dropped"}));
  EXPECT_EQ(planted["record_lines"], true);
  EXPECT_NE(planted["key"], plain["key"]);
  cell.record.cell.plant = {"mask-dropped"};
  EXPECT_NE(MakeRequest(cell, "dir", {})["key"], planted["key"]);
}

TEST(TaskTest, ATwinIsTheCellWithoutOneOption) {
  PreparedCell cell;
  cell.record.cell.engine = "verl-fsdp";
  EXPECT_TRUE(TwinsOf(cell).empty()) << "it has no options";
  EXPECT_FALSE(MakeRequest(cell, "dir", {}).contains("record_lines"));
  cell.record.cell.probe.engine_options = {{"param_offload", "true"}, {"strategy", "\"fsdp\""}};
  cell.record.id = CellId(cell.record.cell);
  EXPECT_EQ(MakeRequest(cell, "dir", {})["record_lines"], true);
  const std::vector<PreparedCell> twins = TwinsOf(cell);
  ASSERT_EQ(twins.size(), 2u);
  EXPECT_EQ(twins[0].record.role, CellRole::kTwin);
  EXPECT_EQ(twins[0].record.cell.probe.engine_options,
            (std::map<std::string, std::string>{{"strategy", "\"fsdp\""}}));
  EXPECT_EQ(MakeRequest(twins[0], "dir", {})["record_lines"], true);
  EXPECT_TRUE(TwinsOf(twins[0]).empty()) << "a twin has none";
  RunRecord run;
  run.cells = {cell.record, twins[0].record, twins[1].record};
  EXPECT_EQ(FindTwin(run, cell.record, "param_offload"), &run.cells[1]);
  EXPECT_EQ(FindTwin(run, cell.record, "strategy"), &run.cells[2]);
  run.cells.pop_back();
  EXPECT_EQ(FindTwin(run, cell.record, "strategy"), nullptr);
  // What is not judged by numbers, or has a fault planted, has none either.
  cell.record.cell.plant = {"mask-dropped"};
  EXPECT_TRUE(TwinsOf(cell).empty());
  cell.record.cell.plant.clear();
  cell.record.cell.engine = "fixture";
  EXPECT_TRUE(TwinsOf(cell).empty());
}

}  // namespace
}  // namespace bkm
