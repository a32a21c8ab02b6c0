// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_DATA_CHECK_H_
#define HARNESS_JUDGE_DATA_CHECK_H_

#include <optional>
#include <vector>

#include "harness/judge/check_result.h"
#include "harness/judge/step_files.h"
#include "harness/model/dealing.h"
#include "harness/numerics/error_measures.h"
#include "harness/numerics/packed_batch.h"

namespace bkm {

// How far the weight of a label may be from its share, relative. bf16 reads a weight to 0.5 %.
inline constexpr double kWeightTolerance = 0.02;
// How far the gradient of the logits may be from that of a cross entropy (TrainedBatch::residual):
// else its labels and weights say nothing.
inline constexpr double kMostResidual = 0.05;

// How close to being clipped a term of a roll-out's loss is, in parts of the bound or in the unit
// of values, where rounding may decide.
inline constexpr double kNearClip = 1e-3;

// What a trainer's steps have to be.
struct ExpectedData {
  PackedBatch kept;                // all documents that the trainer keeps of its data file
  std::vector<int64_t> numbers;    // of these in the file
  std::vector<PackedBatch> steps;  // each with the documents that it has to have
  // The documents that each step had, by their place among the kept ones, in the trainer's order.
  // A step without any had others. Empty: every step has to have all documents.
  std::vector<std::vector<int64_t>> dealt = {};
  // The same of each rank, where each packs rows of documents of its own; else empty.
  std::vector<StepsOfRank> dealt_to_ranks = {};
  int64_t documents_in_a_step = 0;        // that it deals; 0: as many as fit into its rows
  bool drops_last = false;                // the trainer leaves out what fills no step
  int64_t data_ranks = 1;                 // whose gradients are summed, or averaged
  std::optional<PackedBatch> uncut = {};  // the kept documents before they were cut off, if any was
  bool of_values = false;                 // a critic is trained, on a roll-out
  PpoSettings ppo = {};                   // of steps with a roll-out
  // Of the type in which a roll-out's loss may have its log-probs or values.
  int fraction_bits = kFp32FractionBits;
};

// Whether a trainer gave the model, in each step, its documents of the data file, in any order:
// all, or its part of an epoch, which has each document once. And whether it trained what counts in
// them, shifted by one, each token with the same weight: one over the number of tokens that count
// in the step. On a roll-out, each with the weight that PPO's clipped loss has at the log-prob or
// value that was seen, and none where it is clipped. The outcomes:
// - documents-off: a document did not reach the model as data file and template make it, or not
//   once in an epoch.
// - labels-off: a document's place is trained to predict another token than its next one, or is
//   (not) trained though it does (not) count.
// - loss-weights-off: a label's weight is not its share.
// - unseen: a step without a batch, or whose loss is not the cross entropy of labels.
CheckResult CheckData(const std::vector<StepTensors>& steps, const ExpectedData& expected);

}  // namespace bkm

#endif  // HARNESS_JUDGE_DATA_CHECK_H_
