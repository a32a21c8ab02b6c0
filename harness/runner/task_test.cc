// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/task.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

TEST(TaskTest, RequestSaysForWhichWorkerItIs) {
  PreparedCell cell;
  cell.record.cell.engine = "torchtitan";
  cell.worker = {.key = "lock", .python = "/env/bin/python", .alone = true, .bytecode = "/cache/x"};
  const WorkerSetup worker = WorkerOf(MakeRequest(cell, "dir", {}), "lock");
  EXPECT_EQ(worker.key, "lock");
  EXPECT_EQ(worker.python, "/env/bin/python");
  EXPECT_TRUE(worker.alone);
  EXPECT_EQ(worker.bytecode, "/cache/x");
}

TEST(TaskTest, WorkerIsNoPartOfTheKey) {
  PreparedCell cell;
  cell.record.cell.engine = "torchtitan";
  const Json plain = MakeRequest(cell, "dir", {});
  cell.worker = {.python = "/elsewhere/python", .alone = true, .bytecode = "/cache/x"};
  EXPECT_EQ(MakeRequest(cell, "dir", {})["key"], plain["key"]);
  EXPECT_FALSE(plain.contains("alone"));
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

}  // namespace
}  // namespace bkm
