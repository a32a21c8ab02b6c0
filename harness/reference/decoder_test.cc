// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Properties that hold for every model family, tested with small sizes.
#include "harness/reference/decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "harness/numerics/model_weights.h"
#include "harness/reference/gradient_check.h"

namespace bkm {
namespace {

using at::Tensor;

const Arithmetic kExact = ExactArithmetic();

ModelShape ShapeNamed(const std::string& name) {
  if (name != "critic") return *FindModelShape(name);
  ModelShape shape = *FindModelShape("qwen3");
  shape.value_head = true;
  return shape;
}

class DecoderTest : public testing::TestWithParam<std::string> {
 protected:
  DecoderTest() {
    shape_.hidden = 8;
    shape_.layers = 2;
    shape_.vocabulary = 16;
    shape_.heads = 4;
    shape_.kv_heads = shape_.latent.rank > 0 ? 4 : 2;
    shape_.head_dim = 6;
    shape_.feed_forward = 12;
    if (shape_.window > 0) shape_.window = 3;
    if (shape_.latent.rank > 0)
      shape_.latent = {.rank = 5, .plain_dim = 2, .rope_dim = 4, .value_dim = 3};
    if (shape_.experts.count > 0) {
      shape_.experts.count = 4;
      shape_.experts.active = 3;  // a dozen tokens then use all experts
      shape_.experts.hidden = 6;
    }
    uint64_t seed = 1;
    for (const WeightShape& weight : WeightsOf(shape_)) {
      weights_[weight.name] = Random(weight.shape, ++seed) * 0.3 + weight.mean;
    }
    for (const WeightShape& buffer : BuffersOf(shape_)) {
      buffers_[buffer.name] = Random(buffer.shape, ++seed) * 0.1;
    }
  }
  Tensor Logits(std::vector<int64_t> ids, const std::vector<int64_t>& lengths) {
    return Decoder(shape_, kExact, buffers_).Logits(weights_, at::tensor(ids, at::kLong), lengths);
  }

  ModelShape shape_ = ShapeNamed(GetParam());
  Weights weights_;
  Weights buffers_;
};

TEST_P(DecoderTest, PackedDocumentsAreEachAsIfAlone) {
  const Tensor packed = Logits({3, 4, 5, 6, 7, 8, 9}, {3, 4});
  ExpectClose(packed.narrow(0, 0, 3), Logits({3, 4, 5}, {3}));
  ExpectClose(packed.narrow(0, 3, 4), Logits({6, 7, 8, 9}, {4}));
}

TEST_P(DecoderTest, ATokenMovesItselfAndWhatFollowsInItsDocumentOnly) {
  const Tensor moved =
      (Logits({3, 4, 5, 6, 7, 8, 9}, {3, 4}) - Logits({3, 4, 5, 6, 10, 8, 9}, {3, 4}))
          .abs()
          .amax(1);
  // Not exactly zero: an expert that got another number of tokens may sum in another order.
  for (const int64_t t : {0, 1, 2, 3}) EXPECT_LT(moved[t].item<double>(), 1e-12) << t;
  for (const int64_t t : {4, 5, 6}) EXPECT_GT(moved[t].item<double>(), 1e-6) << t;
}

TEST_P(DecoderTest, EveryWeightMatters) {
  const std::vector<int64_t> ids = {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  const Tensor before = Logits(ids, {12});
  for (auto& [name, weight] : weights_) {
    const Tensor kept = weight;
    weight = weight + Random(weight.sizes(), 77) * 0.1;
    EXPECT_GT((Logits(ids, {12}) - before).abs().max().item<double>(), 1e-6) << name;
    weight = kept;
  }
}

TEST_P(DecoderTest, GradientsOfAllWeightsAgreeWithFiniteDifferences) {
  std::vector<Tensor> inputs;
  for (const auto& [name, weight] : weights_) inputs.push_back(weight);
  const Tensor ids = at::tensor({3, 4, 5, 6, 7}, at::kLong);
  CheckGradientsAlongDirections(
      [&](const auto& in) {
        Weights weights;
        size_t i = 0;
        for (const auto& [name, weight] : weights_) weights[name] = in[i++];
        const Decoder model(shape_, kExact, buffers_);
        const Tensor logits = model.Logits(weights, ids, {2, 3});
        return shape_.value_head ? logits : LabelLogProbs(logits, ids, kExact);
      },
      inputs);
}

INSTANTIATE_TEST_SUITE_P(Families, DecoderTest,
                         testing::Values("qwen3", "llama3", "gpt_oss", "qwen3_moe", "deepseek_v3",
                                         "critic"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace bkm
