// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/sensitivity_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using ::testing::HasSubstr;

TEST(SensitivityTableTest, SaysWhatIsSeenAndWhatIsBlind) {
  const std::vector<SensitivityRow> rows = {
      {.model = "qwen3_moe",
       .precision = "bf16",
       .types = {.fp32_log_probs = true},
       .options = "input=padded",
       .cells = 3,
       .sensitivity = {.log_probs_mean = 0.02,
                       .log_probs_max = 0.5,
                       .loss = 0.001,
                       .gradients = {{"a", 0.1}, {"b", 0.2}, {"c", 1.5}}}}};
  const std::string text = SensitivityText(rows);
  EXPECT_THAT(
      text,
      HasSubstr(
          "qwen3_moe  bf16       log-probs         0.02 nats        0.5 nats      0.1 %  -  "));
  EXPECT_THAT(text, HasSubstr("20 %             150 %           1 of 3  input=padded\n"));

  const Json row = SensitivityJson(rows)[0];
  EXPECT_EQ(row["reported_in_fp32"], Json({{"log_probs", true}, {"loss", false}}));
  EXPECT_EQ(row["blind_gradients"], 1);
  EXPECT_EQ(row["gradients"]["c"], 1.5);
  EXPECT_TRUE(row["total_norm"].is_null());
}

}  // namespace
}  // namespace bkm
