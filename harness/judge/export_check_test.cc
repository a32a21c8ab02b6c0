// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/export_check.h"

#include <gtest/gtest.h>

#include <cmath>

namespace bkm {
namespace {

constexpr char kEmbedding[] = "model.embed_tokens.weight";

// An export of one tensor, for two documents of two tokens.
struct Export {
  ObservedExport seen = {.weights = {{kEmbedding, {"float32", {2, 2}, 5}}},
                         .tensors = "tensors/export.safetensors"};
  ExportTensors tensors = {{{kEmbedding, {3, 4}}}, {-1, 0, -2, 0}};
  std::map<std::string, ObservedTensor> file = {{kEmbedding, {4.9, 6, 4}}};
  StepTensors trained = {
      .tensors = {{kEmbedding, {.before = {3, 3.5}, .after = {3, 4}, .norms = {1, 4.9, 5}}}}};
  PackedBatch batch = {{5, 6, 7, 8}, {1, 1, 1, 1}, {2, 2}};
  GoldenStep golden = {.log_probs = {-1, 0, -2, 0}};
  FloorStep floor = {.reports = {.log_probs = {.mean = 0.01, .q99 = 0.01, .max = 0.01}}};
  bool has_floor = true;
  double average_multiple = 4;

  CheckResult Check() const {
    return CheckExport({seen, tensors, file, trained, batch, golden, has_floor ? &floor : nullptr,
                        average_multiple});
  }
};

TEST(ExportCheckTest, WhatWasTrainedPasses) {
  EXPECT_EQ(Export().Check().outcome, ClaimOutcome::kPassed) << Export().Check().message;
  EXPECT_EQ(Export().Check().facts["precision"], "fp32");
}

TEST(ExportCheckTest, AStepThatMovedNothingProvesNothing) {
  Export still;
  still.trained.tensors[kEmbedding].before = {3, 4};
  EXPECT_EQ(still.Check().outcome, ClaimOutcome::kUnseen);
}

TEST(ExportCheckTest, NamesAreThoseOfTheFile) {
  Export lacks;
  lacks.seen.weights.clear();
  EXPECT_EQ(lacks.Check().message,
            "the export lacks 1 of 1 tensors of a Hugging Face folder, first "
            "model.embed_tokens.weight");
  Export beyond;
  beyond.seen.weights["model.bias"] = {"float32", {2}, 1};
  EXPECT_EQ(beyond.Check().reason, "export-names");
  Export missing;
  missing.seen.missing = {"model.norm.weight"};
  EXPECT_EQ(missing.Check().message,
            "transformers finds 1 weights missing in the export, first model.norm.weight");
}

TEST(ExportCheckTest, ATiedHeadMayHaveItsOwnNameWithTheValuesOfTheEmbedding) {
  Export tied;
  tied.seen.weights["lm_head.weight"] = tied.seen.weights[kEmbedding];
  tied.seen.unexpected = {"lm_head.weight"};
  EXPECT_EQ(tied.Check().outcome, ClaimOutcome::kPassed);
  tied.seen.weights["lm_head.weight"].norm = 4.9;
  EXPECT_EQ(tied.Check().reason, "export-names");
}

TEST(ExportCheckTest, ValuesAreThoseAfterTheStep) {
  Export stale;
  stale.tensors.samples[kEmbedding] = {3, 3.99};
  EXPECT_EQ(stale.Check().reason, "export-off");
  Export elsewhere;  // where no sample was taken
  elsewhere.seen.weights[kEmbedding].norm = 5.001;
  EXPECT_EQ(elsewhere.Check().reason, "export-off");
  Export rounded;
  rounded.seen.weights[kEmbedding] = {"bfloat16", {2, 2}, 5.001};
  rounded.tensors.samples[kEmbedding] = {3.005, 4};
  EXPECT_EQ(rounded.Check().outcome, ClaimOutcome::kPassed);
}

TEST(ExportCheckTest, ShapesAndTypesCount) {
  Export half;
  half.seen.weights[kEmbedding].dtype = "float16";
  EXPECT_EQ(half.Check().message,
            "the exported model.embed_tokens.weight is float16, not float32 or bfloat16");
  Export small;
  small.seen.weights[kEmbedding].shape = {2};
  EXPECT_EQ(small.Check().reason, "export-names");
}

TEST(ExportCheckTest, TransformersComputesTheGoldensLogProbs) {
  Export off;
  off.tensors.log_probs[2] = -2.1;
  EXPECT_EQ(off.Check().outcome, ClaimOutcome::kFailed);
  EXPECT_EQ(off.Check().reason, "export-off");
  off.tensors.log_probs[2] = NAN;
  EXPECT_EQ(off.Check().outcome, ClaimOutcome::kFailed);
  Export unseen;
  unseen.tensors.log_probs.clear();
  EXPECT_EQ(unseen.Check().outcome, ClaimOutcome::kUnseen);
  Export without_floor;
  without_floor.has_floor = false;
  EXPECT_EQ(without_floor.Check().outcome, ClaimOutcome::kUnseen);
}

// transformers computes in fp32, so that the wider floor of reports in bf16 does not count.
TEST(ExportCheckTest, ItsLogProbsHaveTheFloorOfReportsInFp32) {
  Export cell;
  cell.floor = {.reports = {.log_probs = {.mean = 0.02, .q99 = 0.03, .max = 0.04}},
                .in_fp32 = ReportFloor{.log_probs = {.mean = 0.004, .q99 = 0.01, .max = 0.02}}};
  for (const int64_t position : cell.batch.JudgedPositions())
    cell.tensors.log_probs[position] += 0.02;
  EXPECT_EQ(cell.Check().message,
            "with the exported weights, transformers' log-probs of step 2 are off by 0.02 "
            "(log_probs_mean), 5.0 times the floor (4 allowed)");
  cell.floor.in_fp32.reset();  // a floor of fp32
  EXPECT_EQ(cell.Check().outcome, ClaimOutcome::kPassed);
}

TEST(ExportCheckTest, TheMeanOfAModelThatIsTrainedInBf16MayBeTwoFloorsOff) {
  Export cell;
  for (const int64_t position : cell.batch.JudgedPositions())
    cell.tensors.log_probs[position] += 0.03;
  EXPECT_EQ(cell.Check().outcome, ClaimOutcome::kPassed);
  cell.average_multiple = 2;
  EXPECT_EQ(cell.Check().message,
            "with the exported weights, transformers' log-probs of step 2 are off by 0.03 "
            "(log_probs_mean), 3.0 times the floor (2 allowed)");
}

}  // namespace
}  // namespace bkm
