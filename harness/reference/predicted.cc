// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/predicted.h"

#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include "absl/strings/match.h"
#include "harness/numerics/model_weights.h"

namespace bkm {
namespace {

using Sees = AttentionVariant::Sees;

constexpr double kLeastDifference = 1e-4;  // nats, mean over judged tokens

// The norms' weights are not loaded: they multiply by one.
Weights WithoutNormWeights(Weights weights, const ModelShape& shape) {
  for (auto& [name, weight] : weights) {
    if (absl::EndsWith(name, "norm.weight")) weight = at::full_like(weight, 1 - shape.norm_offset);
  }
  return weights;
}

// The correction of the experts' scores is not loaded.
Weights Zeros(Weights buffers, const ModelShape&) {
  for (auto& [name, buffer] : buffers) buffer = at::zeros_like(buffer);
  return buffers;
}

// The configuration's `rope_scaling` is not read, or not applied to short sequences.
ModelShape WithoutRopeScaling(ModelShape shape) {
  shape.rope.scaling = "default";
  return shape;
}

// `final_logit_softcapping` is not read, as by a loss that takes hidden states.
ModelShape WithoutLogitSoftcap(ModelShape shape) {
  shape.logit_softcap = 0;
  return shape;
}

// `query_pre_attn_scalar` is not read.
ModelShape WithPlainScale(ModelShape shape) {
  shape.query_scalar = 0;
  return shape;
}

ModelShape WithPlainEmbedding(ModelShape shape) {
  shape.embedding_scaled = false;
  return shape;
}

// Of a token's experts, the one with the lowest score adds nothing.
ModelShape WithoutWeakestExpert(ModelShape shape) {
  --shape.experts.active;
  return shape;
}

// The weights of a token's experts sum to one although they should not, or the other way round.
ModelShape WithOtherExpertWeights(ModelShape shape) {
  shape.experts.normalised = !shape.experts.normalised;
  return shape;
}

// The correction of the scores, which chooses experts, also changes their weights.
ModelShape WithCorrectedWeights(ModelShape shape) {
  shape.experts.corrected = true;
  return shape;
}

struct Fault {
  std::string name;
  bool possible = true;
  AttentionVariant attention;
  ModelShape (*shape)(ModelShape) = nullptr;
  Weights (*weights)(Weights, const ModelShape&) = nullptr;
  Weights (*buffers)(Weights, const ModelShape&) = nullptr;
};

std::vector<Fault> FaultsOf(const ModelShape& shape) {
  return {
      {.name = "causal-across-documents", .attention = {.sees = Sees::kAllBefore}},
      {.name = "bidirectional", .attention = {.sees = Sees::kAll}},
      {.name = "bidirectional-in-document", .attention = {.sees = Sees::kDocument}},
      {.name = "window-dropped",
       .possible = shape.window > 0,
       .attention = {.sees = Sees::kWithoutWindow}},
      {.name = "softcap-dropped",
       .possible = shape.attention_softcap > 0,
       .attention = {.without_softcap = true}},
      {.name = "logit-softcap-dropped",
       .possible = shape.logit_softcap > 0,
       .shape = WithoutLogitSoftcap},
      {.name = "scale-dropped", .possible = shape.query_scalar > 0, .shape = WithPlainScale},
      {.name = "embedding-not-scaled",
       .possible = shape.embedding_scaled,
       .shape = WithPlainEmbedding},
      {.name = "transposed-heads", .attention = {.transposed_heads = true}},
      {.name = "no-rope", .attention = {.without_rope = true}},
      {.name = "rope-scaling-ignored",
       .possible = shape.rope.scaling != "default",
       .shape = WithoutRopeScaling},
      {.name = "kv-interleaved",
       .possible = shape.kv_heads < shape.heads,
       .attention = {.interleaved_kv = true}},
      {.name = "norm-weights-ignored", .weights = WithoutNormWeights},
      {.name = "weakest-expert-dropped",
       .possible = shape.experts.active > 1,
       .shape = WithoutWeakestExpert},
      {.name = "expert-weights-scaled",
       .possible = shape.experts.active > 1,
       .shape = WithOtherExpertWeights},
      {.name = "expert-correction-ignored",
       .possible = !BuffersOf(shape).empty(),
       .buffers = Zeros},
      {.name = "expert-weights-corrected",
       .possible = !BuffersOf(shape).empty(),
       .shape = WithCorrectedWeights},
  };
}

}  // namespace

std::map<std::string, std::vector<double>> PredictedAnswers(const LoadedProbe& probe,
                                                            const StepFacts& golden) {
  const at::NoGradGuard no_grad;
  const Arithmetic exact = ExactArithmetic();
  Weights weights;
  for (const auto& [name, weight] : probe.weights) weights[name] = weight.to(exact.master);
  const PackedBatch& batch = probe.folder.steps.front();
  std::map<std::string, std::vector<double>> answers;
  for (const Fault& fault : FaultsOf(probe.shape)) {
    if (!fault.possible) continue;
    const Decoder model(fault.shape ? fault.shape(probe.shape) : probe.shape, exact,
                        fault.buffers ? fault.buffers(probe.buffers, probe.shape) : probe.buffers);
    const Weights& seen = fault.weights ? fault.weights(weights, probe.shape) : weights;
    const at::Tensor log_probs =
        SftLoss(model, seen, batch, exact, fault.attention, UseOf(probe)).log_probs;
    std::vector<double> answer(log_probs.data_ptr<double>(),
                               log_probs.data_ptr<double>() + log_probs.numel());
    if (batch.MeanDifference(answer, golden.log_probs) > kLeastDifference)
      answers[fault.name] = std::move(answer);
  }
  return answers;
}

}  // namespace bkm
