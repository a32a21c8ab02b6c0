// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/numbers_story.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

const char kNumbers[] = R"({
  "outcome": "failed", "allowed_multiple": 4,
  "log_probs_mean": {"step": 1, "error": 0.5, "floor": 0.04, "multiple": 12.29},
  "log_probs_max": {"step": 0, "error": 2.656, "floor": 0.8655, "multiple": 3.069},
  "gradient": {"step": 2, "error": 1, "floor": 0, "tensor": "lm_head.weight"},
  "worst_token": {"step": 0, "position": 166, "document": 1, "document_position": 129,
                  "error": 2.656, "golden": -7.5541}})";

TEST(NumbersStoryTest, NothingComparedSaysNothing) {
  EXPECT_EQ(NumbersStory(Verdict()), "");
  EXPECT_EQ(NumbersStory({.findings = {{.claim = "numbers", .outcome = ClaimOutcome::kUnseen}}}),
            "");
}

TEST(NumbersStoryTest, NamesTheWorstTokenAndTheDiagnosis) {
  Verdict verdict;
  AdoptEvidence({{"checks", {{"numbers", Json::parse(kNumbers)}}}}, verdict);
  const std::string seen =
      "  log-probs, mean error: 12.3 floors (step 2)\n"
      "  log-probs, worst token: 3.1 floors (step 1)\n"
      "  gradient: infinitely many floors (lm_head.weight, step 3)\n"
      "  allowed: 4 floors\n"
      "  worst token: 166 (document 1, position 129) in step 1, log-prob off by 2.66 from -7.554, "
      "3.1 floors\n";
  EXPECT_EQ(NumbersStory(verdict), seen + "  diagnosis: none of the predicted wrong answers\n");
  verdict.diagnosis = {"transposed-heads", 0.02, 0.55};
  EXPECT_EQ(NumbersStory(verdict),
            seen +
                "  diagnosis: the log-probs of the wrong answer \"transposed-heads\", 0.6 floors "
                "away\n");
}

}  // namespace
}  // namespace bkm
