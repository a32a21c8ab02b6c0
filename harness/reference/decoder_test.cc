// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Properties that hold for every model family, tested with small sizes.
#include "harness/reference/decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "harness/numerics/model_weights.h"
#include "harness/reference/gradient_check.h"

namespace bkm {
namespace {

using at::Tensor;

ModelShape ShapeNamed(const std::string& name) {
  if (name != "critic") return *FindModelShape(name);
  ModelShape shape = *FindModelShape("qwen3");
  shape.value_head = true;
  return shape;
}

// A part of a matrix [inputs, outputs]: where it begins in the memory of the whole, and its sizes.
using Part = std::tuple<int64_t, int64_t, int64_t>;

// The matrices that this thread multiplies with while this object lives, by the memory that they
// are parts of.
class MultipliedWith {
 public:
  MultipliedWith() {
    parts_.clear();
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&Note).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  }
  ~MultipliedWith() { at::removeCallback(handle_); }
  std::set<Part> PartsOf(const Tensor& whole) const { return parts_[whole.storage().data()]; }

 private:
  static std::unique_ptr<at::ObserverContext> Note(const at::RecordFunction& function) {
    const std::string name = function.name();
    if (name != "aten::matmul" && name != "aten::linear") return nullptr;
    const Tensor given = function.inputs()[1].toTensor();
    const Tensor matrix = name == "aten::linear" ? given.t() : given;
    if (matrix.dim() == 2) {  // not one for each head
      parts_[matrix.storage().data()].emplace(matrix.storage_offset(), matrix.size(0),
                                              matrix.size(1));
    }
    return nullptr;
  }

  static thread_local std::map<const void*, std::set<Part>> parts_;
  at::CallbackHandle handle_;
};

thread_local std::map<const void*, std::set<Part>> MultipliedWith::parts_;

// The two parts of a matrix whose inputs or outputs two ranks share.
std::set<Part> Halves(const Tensor& matrix, int64_t dimension) {
  std::set<Part> halves;
  for (const Tensor& part : matrix.chunk(2, dimension))
    halves.emplace(part.storage_offset(), part.size(0), part.size(1));
  return halves;
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
      shape_.latent = {.rank = 5,
                       .query_rank = shape_.latent.query_rank > 0 ? 7 : 0,
                       .plain_dim = 2,
                       .rope_dim = 4,
                       .value_dim = 3,
                       .norm_epsilon = 1e-6};
    if (shape_.experts.count > 0) {
      shape_.experts.count = 4;
      shape_.experts.active = 3;  // a dozen tokens then use all experts
      shape_.experts.hidden = 6;
      if (shape_.experts.groups > 1) {
        shape_.experts.count = 6;
        shape_.experts.groups = 2;
        shape_.experts.active_groups = 1;
      }
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
  for (const int64_t t : {0, 1, 2, 3}) EXPECT_EQ(moved[t].item<double>(), 0) << t;
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

// As Shoeybi et al. 2019 (Megatron-LM) divide a block: by outputs what comes first, by inputs what
// follows it, so that one sum over ranks remains. Routers and the vector of latent attention, which
// all heads share, stay whole.
TEST_P(DecoderTest, TensorParallelismDividesEachProjectionByItsOwnSide) {
  Arithmetic halves = kExact;
  halves.reductions.features = 2;
  const Tensor ids = at::tensor({3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, at::kLong);
  const MultipliedWith multiplied;
  (void)Decoder(shape_, halves, buffers_).Logits(weights_, ids, {12});

  const std::string head = shape_.value_head ? "score."
                           : shape_.tied     ? "embed_tokens."
                                             : "lm_head.";
  int seen = 0;
  for (const auto& [name, weight] : weights_) {
    const auto is_any_of = [&name = name](const std::vector<std::string>& parts) {
      return absl::c_any_of(parts,
                            [&](const std::string& part) { return absl::StrContains(name, part); });
    };
    const bool by_inputs = is_any_of({"o_proj.weight", "down_proj.weight"}) ||
                           absl::EndsWith(name, "experts.down_proj");
    const bool by_outputs =
        is_any_of({"q_proj.weight", "k_proj.weight", "v_proj.weight", "kv_b_proj.weight",
                   "q_b_proj.weight", "gate_proj.weight", "up_proj.weight", head + "weight"}) ||
        absl::EndsWith(name, "experts.gate_up_proj");
    const bool is_whole = is_any_of(
        {"mlp.gate.weight", "mlp.router.weight", "kv_a_proj_with_mqa.weight", "q_a_proj.weight"});
    std::set<Part> expected;
    if (is_whole) expected = {{0, weight.size(1), weight.size(0)}};
    if (by_inputs || by_outputs) {
      // Experts in one tensor are [experts, inputs, outputs]; other weights [outputs, inputs].
      const std::vector<Tensor> matrices =
          weight.dim() == 3 ? weight.unbind(0) : std::vector<Tensor>{weight.t()};
      for (const Tensor& matrix : matrices) expected.merge(Halves(matrix, by_outputs ? 1 : 0));
    }
    EXPECT_EQ(multiplied.PartsOf(weight), expected) << name;
    seen += !expected.empty();
  }
  EXPECT_GE(seen, 7 * 2);  // of two layers
}

INSTANTIATE_TEST_SUITE_P(Families, DecoderTest,
                         testing::Values("qwen3", "llama3", "gpt_oss", "qwen3_moe", "deepseek_v3",
                                         "deepseek_v3_published", "gemma2", "critic"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace bkm
