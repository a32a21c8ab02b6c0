// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// A tiny finished cell that agrees with its golden: two documents of 3 and 2 tokens, two tensors,
// two steps, and the eight layers of qwen3. Each test changes one thing. For tests only.
#ifndef HARNESS_JUDGE_TESTING_STEPS_H_
#define HARNESS_JUDGE_TESTING_STEPS_H_

#include <cmath>
#include <string>
#include <vector>

#include "harness/judge/numbers_check.h"
#include "harness/judge/step_files.h"
#include "harness/model/observation.h"
#include "harness/model/probe.h"
#include "harness/numerics/optimizer_arithmetic.h"
#include "harness/numerics/packed_batch.h"

namespace bkm {

struct RightCell {
  std::vector<PackedBatch> batches;
  std::vector<GoldenStep> golden;
  std::vector<FloorStep> floor;
  std::vector<ObservedStep> reported;
  std::vector<StepTensors> tensors;
  ForwardOnly forward_only;
  OptimizerSettings optimizer = {.clip_norm = 1};

  NumbersInput numbers() const { return {reported, tensors, batches, golden, floor, forward_only}; }
};

// The gradients have norm 5 before clipping to 1 and are the same in both steps. The parameters
// follow AdamW, rounded to fp32 as in an engine.
inline RightCell MakeRightCell() {
  RightCell cell;
  std::map<std::string, std::vector<double>> gradients = {{"a", {0.36, 0.48}}, {"b", {-0.8}}};
  std::map<std::string, std::vector<double>> parameters = {{"a", {0.1f, -0.3f}}, {"b", {0.7f}}};
  std::map<std::string, AdamWMoments> moments;
  for (int k = 0; k < 2; ++k) {
    cell.batches.push_back({{5, 6, 2, 7, 2}, {0, 1, 1, 0, 1}, {3, 2}});
    GoldenStep golden = {.log_probs = {-7, -8, -9, -7.5, -1}, .loss = 7.5, .total_norm = 5};
    StepTensors tensors = {.log_probs = golden.log_probs};
    FloorStep floor = {
        .reports = {.loss = 0.01, .log_probs = {.mean = 0.02, .q99 = 0.05, .max = 0.06}},
        .total_norm = 0.004};
    for (const auto& [name, gradient] : gradients) {
      SampledTensor& sampled = tensors.tensors[name];
      std::vector<double>& parameter = parameters[name];
      sampled.gradient = gradient;
      sampled.norms[0] = TotalNorm(gradient);
      sampled.before = parameter;
      AdamWStep(cell.optimizer, gradient, moments[name], parameter);
      for (double& value : parameter) value = static_cast<float>(value);
      sampled.after = parameter;
      golden.tensors[name] = {gradient, TotalNorm(gradient)};
      floor.gradients[name] = 0.02;
    }
    cell.golden.push_back(golden);
    cell.floor.push_back(floor);
    cell.tensors.push_back(tensors);
    ObservedStep step;
    step.loss = golden.loss;
    step.grad_norm = golden.total_norm;
    step.learning_rate = cell.optimizer.learning_rate;
    step.optimizer_class = "AdamW";
    step.log_probs_dtype = "float32";
    step.attention_nodes = {{"FlexAttentionAutogradOpBackward", 8}};
    step.products = {{"bf16", 57}};
    step.param_groups = {{cell.optimizer.learning_rate, cell.optimizer.beta1, cell.optimizer.beta2,
                          cell.optimizer.epsilon, cell.optimizer.weight_decay}};
    for (int layer = 0; layer < 8; ++layer) step.attended.push_back({layer, "right"});
    cell.reported.push_back(step);
  }
  cell.forward_only = {0, cell.golden[0].log_probs, "float32"};
  return cell;
}

}  // namespace bkm

#endif  // HARNESS_JUDGE_TESTING_STEPS_H_
