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

// What one optimizer step records of one weight.
struct WeightFacts {
  std::vector<double> gradient;  // after clipping, at the sampled places
  double gradient_norm = 0;      // after clipping, all elements
  double parameter_norm = 0;     // before the step
};

struct StepFacts {
  double loss = 0;
  double total_norm = 0;          // over all gradients, before clipping
  std::vector<double> log_probs;  // per flat position, as in LossAndLogProbs
  std::vector<double> entropy;    // per flat position; empty unless asked for
  std::map<std::string, WeightFacts> weights;
};

// The minimized loss and its [tokens] terms, of a batch without a roll-out:
// - A language model: -sum(log_prob[t] * counted[t]) / sum(counted) with PackedBatch::Counted, and
//   the log-probs of PackedBatch::Labels, 0 where there is none.
// - A critic: sum((value[t] - 1)^2 * loss_mask[t]) / (2 * sum(loss_mask)), and its values, which
//   replace the log-probs everywhere.
// Of a batch with a roll-out, with the same log-probs or values; the mean over what
// PackedBatch::Counted counts, whose token is the next one, of
// - a language model: PPO's clipped policy loss with a dual clip (PpoSettings).
// - a critic: max((v - return)^2, (w - return)^2) / 2, w being v clipped to the old value.
struct LossAndLogProbs {
  at::Tensor loss;
  at::Tensor log_probs;
  at::Tensor entropy;  // [tokens] of the language model's distributions; only if asked for
};
// What is made of a language model's logits: they are divided by the temperature first.
struct LogitsUse {
  double temperature = 1;
  bool entropy = false;
  PpoSettings ppo = {};  // of a batch with a roll-out
};
LossAndLogProbs SftLoss(const Decoder& model, const Weights& weights, const PackedBatch& batch,
                        const Arithmetic& arithmetic, const AttentionVariant& variant = {},
                        const LogitsUse& use = {});

// Supervised fine-tuning in one process: forward, backward, clipping by total norm, AdamW. Owns its
// weights and AdamW's moments. Call Observe and then Update for each batch.
class SftTrainer {
 public:
  // `weights` are cast to `arithmetic.master`. A weight that a batch does not use has a gradient of
  // zero.
  SftTrainer(Decoder model, const Weights& weights, const OptimizerSettings& optimizer,
             const Arithmetic& arithmetic, const LogitsUse& use = {});

  // Forward, backward and clipping. `places`: the flat indices at which each weight's gradient is
  // sampled.
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
  LogitsUse use_;
  Decoder model_;
  Weights weights_;
  std::map<std::string, Moments> moments_;
  int steps_ = 0;
};

}  // namespace bkm

#endif  // HARNESS_REFERENCE_SFT_STEP_H_
