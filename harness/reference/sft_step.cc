// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/sft_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <numeric>

#include "harness/numerics/optimizer_arithmetic.h"

namespace bkm {

using at::Tensor;

namespace {

Tensor FromInts(const std::vector<int64_t>& values) {
  return at::tensor(values, at::TensorOptions().dtype(at::kLong));
}

std::vector<double> ToDoubles(const Tensor& tensor) {
  const Tensor flat = tensor.detach().to(at::kDouble).contiguous().view(-1);
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

// In fp64 whatever the arithmetic: this norm only measures and takes no part in the run.
double Norm(const Tensor& tensor) {
  return at::linalg_vector_norm(tensor.detach(), 2, c10::nullopt, false, at::kDouble)
      .item<double>();
}

// [tokens] What a roll-out says of the token that each position predicts.
Tensor OfNextToken(const std::vector<float>& values) {
  return at::tensor(values, at::TensorOptions().dtype(at::kFloat)).roll(-1);
}

Tensor PolicyLoss(const Tensor& log_probs, const PackedBatch::Rollout& rollout,
                  const PpoSettings& settings) {
  const at::ScalarType type = log_probs.scalar_type();
  const Tensor advantage = OfNextToken(rollout.credit).to(type);
  const Tensor ratio = (log_probs - OfNextToken(rollout.old).to(type)).exp();
  const Tensor clipped = ratio.clamp(1 - settings.clip_low, 1 + settings.clip_high);
  const Tensor loss = at::maximum(-advantage * ratio, -advantage * clipped);
  return at::where(advantage < 0, at::minimum(loss, -advantage * settings.clip_dual), loss);
}

Tensor ValueLoss(const Tensor& values, const PackedBatch::Rollout& rollout,
                 const PpoSettings& settings) {
  const at::ScalarType type = values.scalar_type();
  const Tensor old = OfNextToken(rollout.old).to(type), aim = OfNextToken(rollout.credit).to(type);
  const Tensor near =
      at::minimum(at::maximum(values, old - settings.clip_value), old + settings.clip_value);
  return at::maximum((values - aim).square(), (near - aim).square()) / 2;
}

// Gradients that a library may keep in one tensor: all experts of a layer. Torch's fp32 sum over
// that many elements, most of them far below the largest, is off by 1e-4; over one expert by 1e-5.
std::string NormGroup(const std::string& name) { return name.substr(0, name.find(".experts.")); }

}  // namespace

LossAndLogProbs SftLoss(const Decoder& model, const Weights& weights, const PackedBatch& batch,
                        const Arithmetic& arithmetic, const AttentionVariant& variant,
                        const LogitsUse& use) {
  const Tensor input_ids = FromInts(batch.input_ids);
  const Tensor mask = FromInts(batch.loss_mask);
  const Tensor counted = FromInts(batch.Counted());
  const bool is_rollout = !batch.rollout.old.empty();
  const auto mean = [&](const Tensor& terms) {
    return (terms * counted.to(terms.scalar_type())).sum() / counted.sum().item<double>();
  };
  // Each rank casts the weights itself: its gradients are rounded before they are added up.
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const std::vector<int64_t>& lengths : batch.Grouped(arithmetic.reductions.documents)) {
    const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    parts.push_back(model.Logits(weights, input_ids.narrow(0, start, tokens), lengths, variant));
    start += tokens;
  }
  Tensor logits = parts.size() == 1 ? parts[0] : at::cat(parts);
  if (model.is_critic()) {
    const Tensor values = logits.squeeze(-1).to(arithmetic.log_probs);
    if (is_rollout) return {mean(ValueLoss(values, batch.rollout, use.ppo)), values, {}};
    return {((values - 1).square() * mask).sum() / (2 * mask.sum().item<double>()), values, {}};
  }
  if (use.temperature != 1) logits = logits / use.temperature;
  const Tensor labels = FromInts(batch.Labels());
  const Tensor unlabelled = labels.eq(kNoLabel);
  const Tensor log_probs = LabelLogProbs(logits, labels.masked_fill(unlabelled, 0), arithmetic)
                               .masked_fill(unlabelled, 0);
  const Tensor terms = is_rollout ? PolicyLoss(log_probs, batch.rollout, use.ppo) : -log_probs;
  return {mean(terms), log_probs, use.entropy ? Entropy(logits.detach(), arithmetic) : Tensor()};
}

SftTrainer::SftTrainer(Decoder model, const Weights& weights, const OptimizerSettings& optimizer,
                       const Arithmetic& arithmetic, const LogitsUse& use)
    : optimizer_(optimizer), arithmetic_(arithmetic), use_(use), model_(std::move(model)) {
  for (const auto& [name, weight] : weights) {
    weights_[name] =
        weight.to(arithmetic.master, /*non_blocking=*/false, /*copy=*/true).requires_grad_(true);
  }
}

// torch.optim.AdamW's rule; see harness/numerics/optimizer_arithmetic.h.
void SftTrainer::AdamW(const std::string& name, Tensor weight) {
  const at::NoGradGuard no_grad;
  const Tensor& gradient = weight.grad();
  auto& [first, second] = moments_[name];
  if (!first.defined()) {
    first = at::zeros_like(gradient);
    second = at::zeros_like(gradient);
  }
  const double rate = LearningRateAt(optimizer_, steps_ - 1);
  weight.mul_(1 - rate * optimizer_.WeightDecayOf(name));
  first.lerp_(gradient, 1 - optimizer_.beta1);
  second.mul_(optimizer_.beta2).addcmul_(gradient, gradient, 1 - optimizer_.beta2);
  const double correction1 = 1 - std::pow(optimizer_.beta1, steps_);
  const double correction2 = 1 - std::pow(optimizer_.beta2, steps_);
  const Tensor denominator = second.sqrt().div_(std::sqrt(correction2)).add_(optimizer_.epsilon);
  weight.addcdiv_(first, denominator, -rate / correction1);
}

void SftTrainer::Update() {
  ++steps_;
  for (auto& [name, weight] : weights_) AdamW(name, weight);
}

StepFacts SftTrainer::Observe(const PackedBatch& batch,
                              const std::map<std::string, std::vector<int64_t>>& places) {
  // Forward and backward.
  for (auto& [name, weight] : weights_) weight.mutable_grad() = Tensor();
  const LossAndLogProbs result = SftLoss(model_, weights_, batch, arithmetic_, {}, use_);
  result.loss.backward();
  StepFacts facts;
  facts.loss = result.loss.item<double>();
  facts.log_probs = ToDoubles(result.log_probs);
  if (result.entropy.defined()) facts.entropy = ToDoubles(result.entropy);
  // Clip by the norm over all gradients, in their own type as torch does: in fp32 that norm is off
  // by 1e-5 or more, which scales every gradient in right engines too.
  std::map<std::string, std::vector<Tensor>> groups;
  for (auto& [name, weight] : weights_) {
    if (!weight.grad().defined()) weight.mutable_grad() = at::zeros_like(weight);  // an idle expert
    groups[NormGroup(name)].push_back(weight.grad().reshape(-1));
  }
  std::vector<Tensor> norms;
  for (const auto& [name, gradients] : groups)
    norms.push_back(
        at::linalg_vector_norm(gradients.size() == 1 ? gradients[0] : at::cat(gradients)));
  facts.total_norm = at::linalg_vector_norm(at::stack(norms)).item<double>();
  const double coefficient = ClipCoefficient(facts.total_norm, optimizer_.clip_norm);
  // Clip and sample.
  for (auto& [name, weight] : weights_) {
    weight.mutable_grad().mul_(coefficient);
    WeightFacts& seen = facts.weights[name];
    seen.gradient_norm = Norm(weight.grad());
    seen.parameter_norm = Norm(weight);
    if (const auto at = places.find(name); at != places.end()) {
      seen.gradient = ToDoubles(weight.grad().view(-1).index_select(0, FromInts(at->second)));
    }
  }
  return facts;
}

}  // namespace bkm
