// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// The nightly script on two consecutive days between which torchtitan's main broke verl's. It must
// report the new red cells, their culprit, and nothing else. Needs mirrors and the registry;
// skipped without them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/testing/real_bkm.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;

TEST(NightlyStoryTest, TheNightAfterABreakNamesItsCulpritAndNothingElse) {
  if (Mirrors().empty()) GTEST_SKIP() << "no mirrors: BKM_GIT_MIRRORS is not set";
  const std::string state = RealRunFolder("state").string();
  const auto night = [&](const std::string& day) {
    return RunRealScript("ci/nightly", {"--date", day, "--state", state});
  };

  const absl::StatusOr<ProcessResult> before = night("2026-06-03");
  ASSERT_TRUE(before.ok()) << before.status();
  if (before->exit_code == 2 && IsNoNetwork(before->err)) GTEST_SKIP() << before->err;
  ASSERT_EQ(before->exit_code, 0) << before->err;
  EXPECT_THAT(before->out, HasSubstr("nothing to compare with"));

  const absl::StatusOr<ProcessResult> after = night("2026-06-04");
  ASSERT_TRUE(after.ok()) << after.status();
  ASSERT_EQ(after->exit_code, 1) << after->err;
  const Json groups = (*ReadJsonFile(state + "/report.json"))["matrices"][0]["groups"];
  int regressed = 0;
  for (const Json& group : groups) {
    // sdpa was refused before; now the cell fails earlier, for the same cause but another reason.
    EXPECT_EQ(group["reason"], "unexpected-keyword") << group;
    if (group["change"] != "regressed") continue;
    ++regressed;
    EXPECT_EQ(group["cells"].size(), 2u) << "flex and varlen";
    EXPECT_EQ(group["bisect"]["status"], "found");
    EXPECT_THAT(group["bisect"]["culprit"]["commit"].get<std::string>(),
                ::testing::StartsWith("632f67f12"));
  }
  EXPECT_EQ(regressed, 1);

  // A second night reuses earlier results, and both nights are published.
  const absl::StatusOr<ProcessResult> again = night("2026-06-04");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->exit_code, 1) << again->err;
  EXPECT_THAT(again->err, HasSubstr("(reused)"));
  const Json rows = (*ReadJsonFile(state + "/published/table.json"))["rows"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["status"], "fails");
  EXPECT_EQ(rows[1]["status"], "works-except");
  EXPECT_TRUE(std::filesystem::exists(state + "/site/history.html"));
}

}  // namespace
}  // namespace bkm
