// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/data_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace bkm {
namespace {

using ::testing::HasSubstr;

// Two conversations of one answer each; six labels.
const PackedBatch& File() {
  static const auto& batch =
      *new PackedBatch{{1, 4, 17, 2, 1, 5, 23, 24, 2, 1, 4, 18, 2, 1, 5, 25, 26, 2},
                       {0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1},
                       {9, 9}};
  return batch;
}

TrainedBatch RightBatch() {
  return {.input_ids = File().input_ids,
          .document_lengths = {9, 9},
          .labels = {-1, -1, -1, -1, -1, 23, 24, 2, -1, -1, -1, -1, -1, -1, 25, 26, 2, -1},
          .weights = {0, 0, 0, 0, 0, 1.0 / 6, 1.0 / 6, 1.0 / 6, 0, 0, 0, 0, 0, 0, 1.0 / 6, 1.0 / 6,
                      1.0 / 6, 0}};
}

ExpectedData TwoSteps() { return {.kept = File(), .numbers = {0, 1}, .steps = {File(), File()}}; }

CheckResult Checked(const TrainedBatch& batch) {
  StepTensors right, step;
  right.batch = RightBatch();
  step.batch = batch;
  return CheckData({right, step}, TwoSteps());
}

void ExpectFailed(const TrainedBatch& batch, const char* reason, const char* message) {
  const CheckResult result = Checked(batch);
  EXPECT_EQ(result.outcome, ClaimOutcome::kFailed);
  EXPECT_EQ(result.reason, reason);
  EXPECT_EQ(result.message, message);
  ASSERT_FALSE(result.places.empty());
}

TEST(DataCheckTest, EveryDocumentOnceInAnyOrderPasses) {
  EXPECT_EQ(Checked(RightBatch()).outcome, ClaimOutcome::kPassed);
  TrainedBatch turned = RightBatch();
  std::ranges::rotate(turned.input_ids, turned.input_ids.begin() + 9);
  std::ranges::rotate(turned.labels, turned.labels.begin() + 9);
  EXPECT_EQ(Checked(turned).outcome, ClaimOutcome::kPassed);
}

TEST(DataCheckTest, AnUnseenBatchIsNotRight) {
  StepTensors right;
  right.batch = RightBatch();
  const CheckResult result = CheckData({right, {}}, TwoSteps());
  EXPECT_EQ(result.outcome, ClaimOutcome::kUnseen);
  EXPECT_EQ(result.message, "in step 2 nobody saw the batch that the trainer made");
  EXPECT_EQ(CheckData({right}, TwoSteps()).outcome, ClaimOutcome::kUnseen);
}

TEST(DataCheckTest, ADocumentTwiceIsOneLost) {
  TrainedBatch batch = RightBatch();
  std::copy_n(batch.input_ids.begin(), 9, batch.input_ids.begin() + 9);
  ExpectFailed(
      batch, "documents-off",
      "in step 2, document 1 of the data file reached the model changed: its token 2 is 17 "
      "instead of 18, and 9 tokens came instead of 9");
}

TEST(DataCheckTest, ATruncatedDocumentSaysOnWhichSide) {
  TrainedBatch batch = RightBatch();
  for (auto* list : {&batch.input_ids, &batch.labels}) list->resize(15);
  batch.weights.resize(15);
  batch.document_lengths = {9, 6};
  ExpectFailed(batch, "documents-off",
               "in step 2, document 1 of the data file reached the model changed: its last 3 of 9 "
               "tokens are missing");
  batch = RightBatch();
  for (auto* list : {&batch.input_ids, &batch.labels})
    list->erase(list->begin() + 9, list->begin() + 13);
  batch.weights.resize(14);
  batch.document_lengths = {9, 5};
  ExpectFailed(batch, "documents-off",
               "in step 2, document 1 of the data file reached the model changed: its first 4 of 9 "
               "tokens are missing");
}

TEST(DataCheckTest, ADocumentTooManyIsTold) {
  TrainedBatch batch = RightBatch();
  batch.input_ids.push_back(7);
  batch.labels.push_back(-1);
  batch.weights.push_back(0);
  batch.document_lengths = {9, 9, 1};
  ExpectFailed(batch, "documents-off",
               "in step 2, 1 documents more than the data file has reached the model, the first of "
               "1 tokens");
}

// File(), as two samples of a roll-out: their log-probs were -3, and the last label's is clipped.
struct UpdateTest : testing::Test {
  UpdateTest() {
    batch.rollout = {std::vector<float>(18, -3), std::vector<float>(18, 2)};
    batch.rollout.credit[17] = -1;
    step.log_probs.assign(18, -3);
    step.log_probs[5] = -3.5;
    step.log_probs[16] = -4;
    step.batch = RightBatch();
    for (double& weight : step.batch->weights) weight *= 2;
    step.batch->weights[5] *= std::exp(-0.5);
    step.batch->labels[16] = -1;
    step.batch->weights[16] = 0;
  }
  CheckResult Checked() const {
    ExpectedData expected = {.kept = batch, .numbers = {0, 1}, .steps = {batch}};
    expected.of_values = of_values;
    expected.ppo = {.clip_low = 0.2, .clip_high = 0.3, .clip_dual = 2.5, .clip_value = 0.5};
    expected.fraction_bits = fraction_bits;
    return CheckData({step}, expected);
  }
  void ExpectFailed(const char* reason, const char* message) const {
    EXPECT_EQ(Checked().reason, reason);
    EXPECT_EQ(Checked().message, message);
  }

  PackedBatch batch = File();
  StepTensors step;
  bool of_values = false;
  int fraction_bits = kFp32FractionBits;
};

TEST_F(UpdateTest, LabelsThatWeighWhatTheClippedLossSaysPass) {
  EXPECT_EQ(Checked().outcome, ClaimOutcome::kPassed) << Checked().message;
}

TEST_F(UpdateTest, AnotherWeightIsTold) {
  step.batch->weights[6] = 1.0 / 6;
  ExpectFailed("loss-weights-off",
               "in step 1, document 0: the label of place 6 has the weight 0.1667 instead of "
               "0.3333, that of the clipped loss at what was seen");
}

TEST_F(UpdateTest, AClippedLabelThatIsTrainedIsTooMany) {
  step.batch->labels[16] = 2;
  step.batch->weights[16] = -std::exp(-1) / 6;
  ExpectFailed("labels-off",
               "in step 1, document 1: 0 labels are missing, 1 are too many, 0 are others; place 7 "
               "of 9 predicts token 2 instead of nothing");
}

TEST_F(UpdateTest, RoundingMayDecideAtAClip) {
  step.log_probs[16] = -3 + std::log(0.8001);
  EXPECT_EQ(Checked().outcome, ClaimOutcome::kPassed) << Checked().message;
  step.log_probs[16] = -3 + std::log(0.81);
  EXPECT_EQ(Checked().reason, "labels-off");
}

TEST_F(UpdateTest, ALossMayHaveItsLogProbsInTheTypeOfThePrecision) {
  step.batch->weights[7] *= 1.025;  // bf16 has -3 to 0.8 %
  EXPECT_EQ(Checked().reason, "loss-weights-off");
  fraction_bits = kBf16FractionBits;
  EXPECT_EQ(Checked().outcome, ClaimOutcome::kPassed) << Checked().message;
  step.batch->weights[7] *= 1.01;
  EXPECT_EQ(Checked().reason, "loss-weights-off");
}

TEST_F(UpdateTest, WithoutLogProbsNothingIsKnownOfTheLoss) {
  step.log_probs.clear();
  EXPECT_EQ(Checked().outcome, ClaimOutcome::kUnseen);
}

TEST_F(UpdateTest, ACriticsValuesArePulledToTheirReturns) {
  of_values = true;
  for (const int t : {5, 6, 7, 14, 15, 16}) {
    step.log_probs[t] = -2.75;  // within 0.5 of the old one
    step.batch->labels[t] = 0;
    step.batch->weights[t] = 4.75 / 6;
  }
  step.batch->weights[16] = 1.75 / 6;
  EXPECT_EQ(Checked().outcome, ClaimOutcome::kPassed) << Checked().message;
  step.log_probs[5] = -2;  // one too far, on the way to its return: the clipped loss is larger
  EXPECT_EQ(Checked().reason, "labels-off");
  step.batch->labels[5] = -1;
  EXPECT_EQ(Checked().outcome, ClaimOutcome::kPassed) << Checked().message;
}

TEST(DataCheckTest, AnEndTokenThatIsNotTrainedIsNamed) {
  TrainedBatch batch = RightBatch();
  batch.labels[7] = -1;
  ExpectFailed(batch, "labels-off", "in step 2, document 0: its end token is not trained");
}

TEST(DataCheckTest, LabelsThatAreShiftedOnceMoreAreOthers) {
  TrainedBatch batch = RightBatch();
  std::ranges::rotate(batch.labels, batch.labels.begin() + 1);
  std::ranges::rotate(batch.weights, batch.weights.begin() + 1);
  ExpectFailed(batch, "labels-off",
               "in step 2, document 0: 1 labels are missing, 1 are too many, 2 are others; place 4 "
               "of 9 predicts token 23 instead of nothing");
}

TEST(DataCheckTest, AMaskThatIsLostTrainsThePromptToo) {
  TrainedBatch batch = RightBatch();
  for (size_t t = 0; t < 8; ++t) batch.labels[t] = batch.input_ids[t + 1];
  ExpectFailed(batch, "labels-off",
               "in step 2, document 0: 0 labels are missing, 5 are too many, 0 are others; place 0 "
               "of 9 predicts token 4 instead of nothing");
}

// The mean of each document's mean is that over all tokens only if all documents have as many.
TEST(DataCheckTest, AnotherNormalisationIsAnotherWeight) {
  TrainedBatch batch = RightBatch();
  for (double& weight : batch.weights) weight *= 0.9;
  ExpectFailed(batch, "loss-weights-off",
               "in step 2, document 0: the label of place 5 has the weight 0.15 instead of 0.1667, "
               "one over all that count in the step");
  for (double& weight : batch.weights) weight *= 1.01 / 0.9;
  EXPECT_EQ(Checked(batch).outcome, ClaimOutcome::kPassed) << "bf16 reads no better";
  batch.weights[15] = NAN;
  EXPECT_THAT(Checked(batch).message, HasSubstr("document 1: the label of place 6"));
}

// Each of two ranks multiplies its loss by 2, because their gradients are averaged.
TEST(DataCheckTest, WeightsMayBeThoseOfRanksWhoseGradientsAreAveraged) {
  StepTensors step;
  step.batch = RightBatch();
  for (double& weight : step.batch->weights) weight *= 2;
  ExpectedData expected = TwoSteps();
  EXPECT_EQ(CheckData({step, step}, expected).reason, "loss-weights-off");
  expected.data_ranks = 2;
  EXPECT_EQ(CheckData({step, step}, expected).outcome, ClaimOutcome::kPassed);
  step.batch->weights[5] *= 0.5;
  EXPECT_EQ(CheckData({step, step}, expected).reason, "loss-weights-off");
}

TEST(DataCheckTest, PaddingThatIsTrainedIsALabelTooMany) {
  TrainedBatch batch = RightBatch();
  batch.outside = 3;
  ExpectFailed(batch, "labels-off", "in step 2, 3 places are trained that belong to no document");
}

TEST(DataCheckTest, LabelsOfAnotherLossCannotBeRead) {
  TrainedBatch batch = RightBatch();
  batch.residual = 0.2;
  EXPECT_EQ(Checked(batch).outcome, ClaimOutcome::kUnseen);
  EXPECT_THAT(Checked(batch).message, HasSubstr("of no cross entropy"));
  batch.residual = NAN;
  EXPECT_EQ(Checked(batch).outcome, ClaimOutcome::kUnseen);
}

// One document of the file in each step, the second one first.
struct DealtSteps {
  std::vector<StepTensors> steps;
  ExpectedData expected;

  DealtSteps() : steps(2), expected{.kept = File(), .numbers = {3, 5}, .documents_in_a_step = 1} {
    Deal({{1}, {0}});
  }
  void Deal(const std::vector<std::vector<int64_t>>& dealt) {
    expected.dealt = dealt;
    expected.steps.clear();
    for (size_t k = 0; k < dealt.size(); ++k) {
      const PackedBatch batch = File().Of(dealt[k]);
      expected.steps.push_back(batch);
      TrainedBatch& seen = steps[k].batch.emplace();
      seen = {.input_ids = batch.input_ids,
              .document_lengths = batch.document_lengths,
              .labels = batch.Labels(),
              .weights = std::vector<double>(batch.input_ids.size(), 1.0 / 3)};
      const std::vector<int64_t> counted = batch.Counted();
      for (size_t t = 0; t < counted.size(); ++t) {
        if (counted[t] == 0) seen.labels[t] = -1;
      }
    }
  }
  CheckResult Check() const { return CheckData(steps, expected); }
};

TEST(DataCheckTest, AnEpochDealtOverStepsPasses) {
  const DealtSteps right;
  EXPECT_EQ(right.Check().outcome, ClaimOutcome::kPassed) << right.Check().message;
  EXPECT_EQ(right.Check().facts["documents"], (Json{{1}, {0}}));
}

TEST(DataCheckTest, ADocumentAgainInItsEpochIsTold) {
  DealtSteps again;
  again.Deal({{1}, {1}});
  EXPECT_EQ(again.Check().reason, "documents-off");
  EXPECT_EQ(again.Check().message, "step 2 has document 5 again before 1 others came once");
}

TEST(DataCheckTest, PlacesAreNamedByTheirDocumentInTheFile) {
  DealtSteps shifted;
  std::ranges::rotate(shifted.steps[0].batch->labels, shifted.steps[0].batch->labels.begin() + 1);
  EXPECT_EQ(shifted.Check().reason, "labels-off");
  EXPECT_THAT(shifted.Check().message, HasSubstr("in step 1, document 5: "));
}

TEST(DataCheckTest, TheWrongSideOfACutIsTold) {
  DealtSteps cut;
  cut.expected.uncut = File();
  cut.expected.dealt[1].clear();
  TrainedBatch& seen = *cut.steps[1].batch;
  seen.input_ids.resize(6);
  seen.labels.resize(6);
  seen.weights.resize(6);
  seen.document_lengths = {6};
  EXPECT_EQ(
      cut.Check().message,
      "in step 2, document 3 of the data file reached the model changed: it lost the last 3 of "
      "its 9 tokens");
  seen.input_ids.assign(File().input_ids.begin() + 2, File().input_ids.begin() + 9);
  seen.labels.resize(7);
  seen.weights.resize(7);
  seen.document_lengths = {7};
  EXPECT_THAT(cut.Check().message, HasSubstr("it lost the first 2 of its 9 tokens"));
}

TEST(DataCheckTest, AChangedDocumentIsNamedThoughNobodyKnowsWhatItsStepShouldHave) {
  DealtSteps changed;
  changed.expected.dealt[1].clear();
  changed.steps[1].batch->input_ids.pop_back();
  changed.steps[1].batch->labels.pop_back();
  changed.steps[1].batch->weights.pop_back();
  changed.steps[1].batch->document_lengths = {8};
  EXPECT_EQ(changed.Check().message,
            "in step 2, document 3 of the data file reached the model changed: its last 1 of 9 "
            "tokens are missing");
}

}  // namespace
}  // namespace bkm
