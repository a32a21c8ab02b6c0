// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REFERENCE_SFT_STEP_H_
#define HARNESS_REFERENCE_SFT_STEP_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/model/probe.h"
#include "harness/numerics/packed_batch.h"
#include "harness/reference/arithmetic.h"
#include "harness/reference/decoder.h"

namespace bkm {

// What one optimizer step shows of one weight.
struct WeightFacts {
  std::vector<double> gradient;  // after clipping, at the sampled places
  double gradient_norm = 0;      // after clipping, all elements
  double parameter_norm = 0;     // before the step
};

struct StepFacts {
  double loss = 0;
  double total_norm = 0;          // of all gradients, before clipping
  std::vector<double> log_probs;  // per flat position, as LossAndLogProbs has them
  std::map<std::string, WeightFacts> weights;
};

// What a step minimizes, and the [tokens] that it is made of.
// - A language model: -sum(log_prob[t] * loss_mask[t + 1]) / sum(loss_mask), and the log-probs of
// the
//   labels, 0 where there is none.
// - A critic: sum((value[t] - 1)^2 * loss_mask[t]) / (2 * sum(loss_mask)), and its values, which
// take
//   the log-probs' place everywhere.
struct LossAndLogProbs {
  at::Tensor loss;
  at::Tensor log_probs;
};
LossAndLogProbs SftLoss(const Decoder& model, const Weights& weights, const PackedBatch& batch,
                        const Arithmetic& arithmetic, const AttentionVariant& variant = {});

// Supervised fine-tuning in one process: forward, backward, clip by total norm, AdamW. Owns its
// weights and AdamW's moments; for each batch Observe, and then Update.
class SftTrainer {
 public:
  // `weights` are cast to `arithmetic.master`; each is used by every batch, or has a gradient of
  // zero.
  SftTrainer(Decoder model, const Weights& weights, const OptimizerSettings& optimizer,
             const Arithmetic& arithmetic);

  // Forward, backward and clipping. `places`: the flat indices to sample of each weight's gradient.
  StepFacts Observe(const PackedBatch& batch,
                    const std::map<std::string, std::vector<int64_t>>& places);
  // One step of AdamW with the gradients of the last Observe.
  void Update();

  const Weights& weights() const { return weights_; }

 private:
  struct Moments {
    at::Tensor first;
    at::Tensor second;
  };
  void AdamW(const std::string& name, at::Tensor weight);

  OptimizerSettings optimizer_;
  Arithmetic arithmetic_;
  Decoder model_;
  Weights weights_;
  std::map<std::string, Moments> moments_;
  int steps_ = 0;
};

}  // namespace bkm

#endif  // HARNESS_REFERENCE_SFT_STEP_H_
