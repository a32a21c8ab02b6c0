// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Matrices too large to run whole: --cover, --urgent-first and --time-budget of the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/testing/bkm_under_test.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class PlanOptionsTest : public ::testing::Test {
 protected:
  // 2 x 2 x 3 cells.
  fs::path WriteProduct() const {
    const fs::path path = bkm_.WriteMatrix({"passes"});
    Json matrix = *ReadJsonFile(path);
    matrix["groups"][0]["engine"]["subjects"] = {"path:../packages/passes/engine",
                                                 "path:../packages/refuses/engine"};
    matrix["groups"][0]["probe"] = {{"attention", {"flex"}},
                                    {"precision", {"bf16", "fp32"}},
                                    {"seed", {1, 2, 3}},
                                    {"steps", 1}};
    EXPECT_TRUE(WriteFile(path, ToText(matrix)).ok());
    return path;
  }

  const BkmUnderTest bkm_;
};

TEST_F(PlanOptionsTest, ARunOfACoverHasEveryPairOfValuesAndSaysWhatIsUnknown) {
  const fs::path matrix = WriteProduct();
  const ProcessResult plan = bkm_.Run({"plan", matrix, "--cover", "2"});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("of 12 cells, "));
  EXPECT_THAT(plan.out, HasSubstr("they hold all 16 combinations of 2 values"));
  EXPECT_THAT(plan.out, HasSubstr("Unknown: a fault that only a combination of 3 values shows"));
  EXPECT_THAT(plan.out, HasSubstr("(--cover 2)"));

  const ProcessResult run = bkm_.Run({"run", matrix, "--cover", "2"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("of 12 cells, "));
  const Json json = bkm_.ReadRun();
  EXPECT_EQ(json["made_by"]["whole"], false);
  EXPECT_LT(json["cells"].size(), 12u);
  std::set<std::string> pairs;
  for (const Json& cell : json["cells"]) {
    const std::string id = cell["id"];
    const auto has = [&](const char* text) { return absl::StrContains(id, text); };
    const std::string engine = has("passes/engine") ? "passes" : "refuses";
    const std::string precision = has("precision=bf16") ? "bf16" : "fp32";
    const std::string seed = has("seed=2") ? "2" : has("seed=3") ? "3" : "1";
    pairs.insert({engine + precision, engine + seed, precision + seed});
  }
  EXPECT_EQ(pairs.size(), 16u);
}

TEST_F(PlanOptionsTest, CellsThatTheTableLacksRunFirst) {
  const fs::path matrix = WriteProduct();
  const fs::path table = bkm_.folder() / "table.json";
  ASSERT_TRUE(
      WriteFile(table, R"({"schema": 1, "date": "2026-01-01", "runs": [], "rows": []})").ok());
  const ProcessResult plan =
      bkm_.Run({"plan", matrix, "--urgent-first", "--table", table.string()});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("--urgent-first: 12 new, 0 expired, 0 suspect, 0 known"));
  const ProcessResult missing =
      bkm_.Run({"plan", matrix, "--urgent-first", "--table", (bkm_.folder() / "none").string()});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("none"));
}

TEST_F(PlanOptionsTest, NoCellStartsAfterTheTimeBudgetAndTheSameCommandFinishes) {
  const fs::path matrix = bkm_.WriteMatrix({"passes", "refuses", "exits"});
  const ProcessResult out_of_time = bkm_.Run({"run", matrix, "--quiet", "--time-budget", "1ms"});
  EXPECT_EQ(out_of_time.exit_code, 3);
  EXPECT_EQ(out_of_time.err, "bkm: the time budget is over; run the same command to finish\n");
  EXPECT_EQ(bkm_.ReadRun()["finished"], false);
  EXPECT_EQ(bkm_.ReadRun()["counts"], (Json{{"pending", 3}}));
  const ProcessResult rest = bkm_.Run({"run", matrix, "--time-budget", "2h"});
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(bkm_.ReadRun()["counts"], (Json{{"ok", 1}, {"broken", 1}, {"refused", 1}}));
  EXPECT_EQ(bkm_.Run({"run", matrix, "--time-budget", "soon"}).exit_code, 2);
}

}  // namespace
}  // namespace bkm
