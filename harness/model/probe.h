// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_PROBE_H_
#define HARNESS_MODEL_PROBE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"

namespace bkm {

// Gradient clipping by total norm, then AdamW with a constant learning rate (torch.optim.AdamW's
// rule).
struct OptimizerSettings {
  double learning_rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  double clip_norm = 1.0;
  bool operator==(const OptimizerSettings&) const = default;
};

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
  uint64_t seed = 1;                                       // of weights and data
  std::vector<int64_t> documents = {37, 90, 64, 20};       // tokens per packed document
  std::map<std::string, std::string> engine_options = {};  // name -> value as JSON text
  OptimizerSettings optimizer;
  bool operator==(const Probe&) const = default;
};

Json ToJson(const OptimizerSettings& optimizer);
Json ToJson(const Probe& probe);
// Strict: unknown keys and wrong types are errors that start with `origin`.
absl::StatusOr<Probe> ProbeFromJson(const Json& json, const std::string& origin);

// The part of the probe that weights, data and golden depend on; its hash names them in caches and
// in golden/numeric.
Json NumericsOf(const Probe& probe);

}  // namespace bkm

#endif  // HARNESS_MODEL_PROBE_H_
