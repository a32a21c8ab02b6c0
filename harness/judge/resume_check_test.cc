// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/resume_check.h"

#include <gtest/gtest.h>

#include <cmath>

namespace bkm {
namespace {

// Two steps of one tensor; the second is what a fresh engine repeats.
struct Run {
  std::vector<ObservedStep> reported = {{.loss = 8, .grad_norm = 2, .learning_rate = 1e-4},
                                        {.loss = 7, .grad_norm = 1, .learning_rate = 2e-4}};
  std::vector<StepTensors> tensors = {StepOf(0.5), StepOf(0.25)};

  static StepTensors StepOf(double value) {
    return {.log_probs = {-value, -1},
            .tensors = {{"w", {{value, 0}, {1, 2}, {0.9, 1.9}, {value, 3, 2.9}}}}};
  }
};

struct Resumed {
  std::vector<ObservedStep> reported = {Run().reported[1]};
  std::vector<StepTensors> tensors = {Run().tensors[1]};
};

CheckResult Check(const Resumed& resumed, std::optional<int64_t> files = 3) {
  const Run run;
  return CheckResume(files, {run.reported, run.tensors}, {resumed.reported, resumed.tensors});
}

TEST(ResumeCheckTest, EqualStepsPass) {
  EXPECT_EQ(Check(Resumed()).outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(Check(Resumed()).stage, Stage::kResume);
}

TEST(ResumeCheckTest, AStepThatMovedNothingProvesNothing) {
  struct Run run;
  run.tensors[0].tensors["w"].before = run.tensors[0].tensors["w"].after;
  const Resumed resumed;
  EXPECT_EQ(
      CheckResume(3, {run.reported, run.tensors}, {resumed.reported, resumed.tensors}).outcome,
      ClaimOutcome::kUnseen);
}

TEST(ResumeCheckTest, OneBitIsADifference) {
  Resumed resumed;
  double& value = resumed.tensors[0].tensors["w"].after[1];
  value = std::nextafter(value, 2);
  const CheckResult result = Check(resumed);
  EXPECT_EQ(result.outcome, ClaimOutcome::kFailed);
  EXPECT_EQ(result.reason, "resume-off");
  EXPECT_EQ(result.facts["quantity"], "the parameter after the step, w");
}

TEST(ResumeCheckTest, WhereADeviceDoesNotRepeatItsBitsOnlyWhatIsLoadedIsCompared) {
  const struct Run run;
  const auto check = [&](const Resumed& resumed) {
    return CheckResume(3, {run.reported, run.tensors}, {resumed.reported, resumed.tensors},
                       /*repeats=*/false);
  };
  Resumed computed;
  computed.reported[0].loss = 7.5;
  computed.tensors[0].tensors["w"].after[1] = 2;
  EXPECT_EQ(check(computed).outcome, ClaimOutcome::kPassed) << "the numbers are judged elsewhere";
  Resumed loaded;
  loaded.tensors[0].tensors["w"].before[1] = std::nextafter(2, 3);
  EXPECT_EQ(check(loaded).facts["quantity"], "the parameter before the step, w");
  Resumed scheduled;
  scheduled.reported[0].learning_rate = 1e-4;
  EXPECT_EQ(check(scheduled).facts["quantity"], "the learning rate");
  Resumed absent;
  absent.tensors[0].log_probs.clear();
  EXPECT_EQ(check(absent).facts["quantity"], "the log-probs");
}

TEST(ResumeCheckTest, TheCauseIsNamedBeforeItsConsequences) {
  Resumed resumed;
  resumed.reported[0].loss = 7.5;
  resumed.tensors[0].tensors["w"].before[0] = 1.5;
  EXPECT_EQ(Check(resumed).message,
            "after loading the checkpoint of step 1, the parameter before the step, w differs in "
            "step 2 by 0.5 from the uninterrupted run");
}

TEST(ResumeCheckTest, OtherDocumentsAreNamedBeforeTheirNumbers) {
  struct Run run;
  run.reported[0].documents = {4, 1};
  run.reported[1].documents = {0, 3};
  Resumed resumed;
  resumed.reported[0].documents = {4, 1};
  resumed.reported[0].loss = 7.5;
  const auto check = [&] {
    return CheckResume(3, {run.reported, run.tensors}, {resumed.reported, resumed.tensors});
  };
  EXPECT_EQ(
      check().message,
      "after loading the checkpoint of step 1, step 2 has the documents 4, 1 instead of 0, 3, "
      "which step 1 had in the uninterrupted run");
  resumed.reported[0].documents.clear();
  EXPECT_EQ(
      check().message,
      "after loading the checkpoint of step 1, step 2 has documents that are none of the data "
      "file's instead of 0, 3");
}

TEST(ResumeCheckTest, EveryQuantityCounts) {
  for (const auto& spoil : std::vector<std::function<void(Resumed&)>>{
           [](Resumed& r) { r.reported[0].loss.reset(); },
           [](Resumed& r) { r.reported[0].grad_norm = 1.5; },
           [](Resumed& r) { r.reported[0].learning_rate = 1e-4; },
           [](Resumed& r) { r.tensors[0].log_probs[0] = NAN; },
           [](Resumed& r) { r.tensors[0].tensors.clear(); },
           [](Resumed& r) { r.tensors[0].tensors["w"].gradient[0] = 0; },
           [](Resumed& r) { r.tensors[0].tensors["w"].norms[2] = 3; }}) {
    Resumed resumed;
    spoil(resumed);
    EXPECT_EQ(Check(resumed).outcome, ClaimOutcome::kFailed);
  }
}

TEST(ResumeCheckTest, ACheckpointWithoutAFileIsWrong) {
  EXPECT_EQ(Check(Resumed(), 0).message,
            "saving a checkpoint after step 1 raised nothing and wrote no file");
}

TEST(ResumeCheckTest, WithoutTheStepsOfTheFreshEngineNothingIsKnown) {
  Resumed resumed;
  resumed.reported.clear();
  resumed.tensors.clear();
  EXPECT_EQ(Check(resumed).outcome, ClaimOutcome::kUnseen);
}

}  // namespace
}  // namespace bkm
