// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_PROBE_H_
#define HARNESS_MODEL_PROBE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/fields.h"
#include "harness/base/json.h"

namespace bkm {

// Gradient clipping by total norm, then AdamW (torch.optim.AdamW's rule) with a learning rate that
// rises through `warmup_steps` steps and stays.
struct OptimizerSettings {
  double learning_rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  double clip_norm = 1.0;
  int warmup_steps = 0;
  // How engines count a warm-up of w steps, at step k from 0 on: "zero-based" is k / w (HF and
  // verl's FSDP engine: the first step's rate is 0), "one-based" (k + 1) / w (torchtitan). Empty
  // without a warm-up; the engine kind's own where a matrix names none.
  std::string schedule;
  bool operator==(const OptimizerSettings&) const = default;
};

// The schedules that OptimizerSettings knows.
const std::vector<std::string>& WarmupSchedules();
// What is asked of the optimizer at step `step`, from 0 on.
double LearningRateAt(const OptimizerSettings& settings, int step);

// What is asked of a pairing: model, packed batch, attention, precision, options, optimizer, number
// of steps, device.
struct Probe {
  std::string model = "qwen3";
  std::string
      attention;  // flex, varlen, sdpa; for HF: eager, sdpa, flex_attention, flash_attention_2
  std::string precision = "bf16";  // bf16 or fp32
  std::string device = "cpu";
  int ranks = 1;
  int threads = 1;
  int steps = 3;
  uint64_t seed = 1;  // of weights and data
  // Tokens per packed document: one longer than any model's sliding window (128), and short ones.
  std::vector<int64_t> documents = {37, 150, 64, 20, 9};
  // "lm": log-probs of a language model. "value": a critic, one value per token.
  std::string head = "lm";
  // "packed": documents one after the other. "padded": a row each, padded on the right (verl's
  // use_remove_padding=False). The answer is the same.
  std::string input = "packed";
  // Each step's documents are cut into that many parts, in order; gradients are accumulated, the
  // loss is normalised by the tokens of all. The answer is the same.
  int micro_batches = 1;
  // An empty ./outputs/checkpoint, as an earlier run may leave it, lies in the cell's folder.
  bool leftover_checkpoint = false;
  std::map<std::string, std::string> engine_options = {};  // name -> value as JSON text
  OptimizerSettings optimizer;
  bool operator==(const Probe&) const = default;
};

void Describe(Fields& fields, OptimizerSettings& settings);
Json ToJson(const OptimizerSettings& optimizer);
Json ToJson(const Probe& probe);
// Strict: unknown keys and wrong types are errors that start with `origin`.
absl::StatusOr<Probe> ProbeFromJson(const Json& json, const std::string& origin);

// The part of the probe that weights, data and golden depend on; its hash names them in caches and
// in golden/numeric. What came later is in it only where it is not the default, so that names stay.
Json NumericsOf(const Probe& probe);

}  // namespace bkm

#endif  // HARNESS_MODEL_PROBE_H_
