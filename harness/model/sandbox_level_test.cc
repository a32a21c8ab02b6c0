// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/sandbox_level.h"

#include <gtest/gtest.h>

#include "harness/model/cell_record.h"

namespace bkm {
namespace {

TEST(SandboxLevelTest, NamesAreReadBack) {
  for (const std::string& name : SandboxLevelNames())
    EXPECT_EQ(Name(*SandboxLevelFromName(name)), name);
  EXPECT_EQ(SandboxLevelFromName("none"), std::nullopt);
  EXPECT_EQ(SandboxLevelFromName(""), std::nullopt);
}

TEST(SandboxLevelTest, WeakerOfTwoLevelsIsTheLaterInThisOrder) {
  const std::vector<std::string> order = {"full", "full-gpu", "", "weak", "off"};
  for (size_t a = 0; a < order.size(); ++a) {
    for (size_t b = 0; b < order.size(); ++b)
      EXPECT_EQ(WeakerLevel(order[a], order[b]), order[std::max(a, b)]) << a << " " << b;
  }
}

TEST(SandboxLevelTest, AGpuWeakensTheFullLevelOfResults) {
  EXPECT_EQ(LevelOnDevice("full", "cuda"), "full-gpu");
  EXPECT_EQ(LevelOnDevice("full", "cpu"), "full");
  for (const char* level : {"", "weak", "off"}) EXPECT_EQ(LevelOnDevice(level, "cuda"), level);
  EXPECT_EQ(SandboxLevelFromName("full-gpu"), std::nullopt) << "nobody can ask for it";
}

TEST(SandboxLevelTest, RunRecordsItsLevelAndAnOlderRunHasNone) {
  const RunRecord run{.matrix = "m", .sandbox = "weak"};
  EXPECT_EQ(ToJson(run)["sandbox"], "weak");
  EXPECT_EQ(RunRecordFromJson(Json::parse(ToJson(run).dump()), "run.json")->sandbox, "weak");
  const RunRecord older = *RunRecordFromJson(Json{{"matrix", "m"}}, "run.json");
  EXPECT_EQ(older.sandbox, "");
  EXPECT_FALSE(ToJson(older).contains("sandbox"));
  EXPECT_EQ(LevelText(older.sandbox), "not recorded");
  EXPECT_FALSE(RunRecordFromJson(Json{{"matrix", "m"}, {"sandbox", "none"}}, "run.json").ok());
}

}  // namespace
}  // namespace bkm
