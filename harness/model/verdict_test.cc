// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/verdict.h"

#include <gtest/gtest.h>

#include <limits>

namespace bkm {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// A wrong cell whose check of numbers fails for two reasons.
Verdict AWrong() {
  return {.kind = VerdictKind::kWrong,
          .stage = Stage::kGolden,
          .reason = "log-probs-off",
          .message = "log-probs are off",
          .blame = {"library"},
          .findings = {{.claim = "numbers",
                        .outcome = ClaimOutcome::kFailed,
                        .reason = "log-probs-off",
                        .message = "log-probs are off",
                        .facts = {{"allowed_multiple", 4.0}},
                        .places = {{"step 2", "off by 3", 8.5}, {"step 1", "not finite"}},
                        .places_left_out = 7},
                       {.claim = "numbers",
                        .outcome = ClaimOutcome::kFailed,
                        .stage = Stage::kBackward,
                        .reason = "gradients-off",
                        .message = "a gradient is off"},
                       {.claim = "backend", .facts = {{"asked", "flex"}}},
                       {.claim = "mask",
                        .outcome = ClaimOutcome::kUnseen,
                        .message = "nobody read the masks"}},
          .failures = 2,
          .diagnosis = Diagnosis{"no-rope", 0.5, kInfinite},
          .factor = "all gradients are twice as large",
          .ranks = {"rank 1 lacks a shard"},
          .last_stage = Stage::kStep,
          .exceptions = {{"ValueError: no", "library", "call", "f(x)"}, {"RuntimeError: 1"}}};
}

Verdict ReadBack(const Verdict& verdict) {
  return *VerdictFromJson(*ParseJson(ToLine(ToJson(verdict)), "v"), "v");
}

TEST(VerdictTest, AVerdictSurvivesItsJson) { EXPECT_EQ(ReadBack(AWrong()), AWrong()); }

TEST(VerdictTest, TheFailureThatDecidesIsTheOneOfTheVerdict) {
  Verdict verdict = AWrong();
  EXPECT_EQ(verdict.Deciding(), &verdict.findings[0]);
  verdict.stage = Stage::kBackward;
  verdict.reason = "gradients-off";
  EXPECT_EQ(verdict.Deciding(), &verdict.findings[1]);
  verdict.kind = VerdictKind::kBroken;
  EXPECT_EQ(verdict.Deciding(), nullptr) << "its ending decides";
}

TEST(VerdictTest, AnOutlineIsWhatRunJsonKeeps) {
  const Verdict outline = OutlineOf(AWrong());
  EXPECT_EQ(outline.Failed().size(), 2u);
  EXPECT_EQ(outline.findings.size(), 2u);
  EXPECT_TRUE(outline.findings[0].places.empty());
  EXPECT_EQ(outline.Find("numbers")->facts, Json::object());
  EXPECT_EQ(ToJson(outline)["failures"], ToJson(AWrong())["failures"]);
  EXPECT_EQ(outline.diagnosis, std::nullopt);
}

TEST(VerdictTest, OfFailuresAndChecksOfOneClaimTheCheckHasTheFactsOfTheFirst) {
  const Json evidence = EvidenceOf(AWrong());
  EXPECT_EQ(evidence["checks"]["numbers"]["message"], "log-probs are off");
  EXPECT_EQ(evidence["failures"].size(), 2u);
  EXPECT_EQ(evidence["failures"][0]["of_places"], 9);
  EXPECT_FALSE(evidence["failures"][1].contains("of_places"));
}

TEST(VerdictTest, MalformedEvidenceIsLeftOut) {
  Verdict verdict;
  AdoptEvidence(Json::parse(R"({"checks": {"mask": 7, "load": {"outcome": 7, "message": []}},
                                "failures": "x", "diagnosis": {"answer": 1}, "ranks": [1, "r"],
                                "last_stage": "never", "exceptions": [null]})"),
                verdict);
  ASSERT_EQ(verdict.findings.size(), 1u);
  EXPECT_EQ(verdict.Find("load")->outcome, ClaimOutcome::kUnseen);
  EXPECT_EQ(verdict.diagnosis, std::nullopt);
  EXPECT_EQ(verdict.ranks, std::vector<std::string>{"r"});
  EXPECT_EQ(verdict.last_stage, std::nullopt);
}

// Of a library that was not asked, and of a verdict.json of before 2026-11, which has no list.
TEST(VerdictTest, AFailedClaimThatIsNotListedIsNoFailureOfTheCell) {
  Verdict verdict;
  AdoptEvidence({{"checks", {{"mask", {{"outcome", "failed"}, {"message", "a leak"}}}}}}, verdict);
  EXPECT_EQ(verdict.Find("mask")->outcome, ClaimOutcome::kFailed);
  EXPECT_TRUE(verdict.Failed().empty());
  const Json written = ToJson(verdict);
  EXPECT_FALSE(written.contains("failures"));
  EXPECT_FALSE(written["evidence"].contains("failures"));
  EXPECT_EQ(ReadBack(verdict).Find("mask")->message, "a leak");
}

}  // namespace
}  // namespace bkm
