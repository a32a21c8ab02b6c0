// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/kernels/varlen_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "harness/kernels/varlen_arguments.h"

namespace bkm {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::FloatNear;
using ::testing::Pointwise;

std::vector<double> RandomNumbers(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<double> numbers(count);
  for (double& number : numbers) number = normal(generator);
  return numbers;
}

template <typename Real>
std::vector<Real> Cast(const std::vector<double>& numbers) {
  return std::vector<Real>(numbers.begin(), numbers.end());
}

template <typename Real>
struct Outcome {
  std::vector<Real> output, logsumexp, query_gradient, key_gradient, value_gradient;
};

// Inputs for a shape, from fixed seeds; `weights` is dLoss/doutput.
struct Inputs {
  explicit Inputs(const VarlenShape& shape)
      : query(RandomNumbers(shape.total_queries * shape.query_heads * shape.head_dim, 1)),
        key(RandomNumbers(shape.key_offsets.back() * shape.key_heads * shape.head_dim, 2)),
        value(RandomNumbers(shape.key_offsets.back() * shape.key_heads * shape.value_dim, 3)),
        weights(RandomNumbers(shape.total_queries * shape.query_heads * shape.value_dim, 4)) {}
  std::vector<double> query, key, value, weights;
};

template <typename Real>
Outcome<Real> Attend(const VarlenShape& shape, const Inputs& inputs) {
  const std::vector<Real> query = Cast<Real>(inputs.query), key = Cast<Real>(inputs.key),
                          value = Cast<Real>(inputs.value), weights = Cast<Real>(inputs.weights);
  Outcome<Real> result;
  result.output.resize(weights.size());
  result.logsumexp.resize(shape.total_queries * shape.query_heads);
  result.query_gradient.resize(query.size());
  result.key_gradient.resize(key.size());
  result.value_gradient.resize(value.size());
  for (int64_t document = 0; document < shape.Documents(); ++document) {
    for (int64_t head = 0; head < shape.query_heads; ++head) {
      VarlenForwardHead<Real, Real>(
          shape,
          {query.data(), key.data(), value.data(), result.output.data(), result.logsumexp.data()},
          document, head);
    }
    for (int64_t head = 0; head < shape.key_heads; ++head) {
      VarlenBackwardKeyHead<Real, Real>(
          shape,
          {weights.data(), query.data(), key.data(), value.data(), result.output.data(),
           result.logsumexp.data(), result.query_gradient.data(), result.key_gradient.data(),
           result.value_gradient.data()},
          document, head);
    }
  }
  return result;
}

// The document that owns a row, or -1.
int64_t DocumentOf(const std::vector<int64_t>& offsets, int64_t row) {
  for (size_t d = 0; d + 1 < offsets.size(); ++d) {
    if (offsets[d] <= row && row < offsets[d + 1]) return d;
  }
  return -1;
}

// The textbook formula: one dense matrix of scores over all packed tokens, with a mask. It shares
// only the meaning of the shape's fields with the code under test.
bool DenseMask(const VarlenShape& shape, int64_t i, int64_t j) {
  const int64_t document = DocumentOf(shape.query_offsets, i);
  if (document < 0 || document != DocumentOf(shape.key_offsets, j)) return false;
  const int64_t from_end_query = shape.query_offsets[document + 1] - i;
  const int64_t from_end_key = shape.key_offsets[document + 1] - j;
  const int64_t ahead = from_end_query - from_end_key;  // > 0: the key lies after the query
  return (shape.window_right < 0 || ahead <= shape.window_right) &&
         (shape.window_left < 0 || -ahead <= shape.window_left);
}

std::vector<double> DenseOutput(const VarlenShape& shape, const Inputs& inputs) {
  const int64_t dim = shape.head_dim, value_dim = shape.value_dim;
  std::vector<double> output(inputs.weights.size());
  for (int64_t i = 0; i < shape.total_queries; ++i) {
    for (int64_t head = 0; head < shape.query_heads; ++head) {
      const double* q = &inputs.query[(i * shape.query_heads + head) * dim];
      double* o = &output[(i * shape.query_heads + head) * value_dim];
      double sum = 0;
      for (int64_t j = 0; j < shape.key_offsets.back(); ++j) {
        if (!DenseMask(shape, i, j)) continue;
        const int64_t row = j * shape.key_heads + head * shape.key_heads / shape.query_heads;
        double score = 0;
        for (int64_t x = 0; x < dim; ++x) score += q[x] * inputs.key[row * dim + x];
        const double weight = std::exp(shape.scale * score);
        sum += weight;
        for (int64_t x = 0; x < value_dim; ++x) o[x] += weight * inputs.value[row * value_dim + x];
      }
      for (int64_t x = 0; x < value_dim && sum > 0; ++x) o[x] /= sum;
    }
  }
  return output;
}

double Loss(const VarlenShape& shape, const Inputs& inputs) {
  const std::vector<double> output = DenseOutput(shape, inputs);
  double loss = 0;
  for (size_t i = 0; i < output.size(); ++i) loss += output[i] * inputs.weights[i];
  return loss;
}

// d Loss / d (inputs.*member) of the dense computation by central differences.
std::vector<double> Slopes(const VarlenShape& shape, Inputs inputs,
                           std::vector<double> Inputs::*member) {
  constexpr double kStep = 1e-5;
  std::vector<double> slopes;
  for (double& x : inputs.*member) {
    const double keep = x;
    x = keep + kStep;
    const double above = Loss(shape, inputs);
    x = keep - kStep;
    const double below = Loss(shape, inputs);
    x = keep;
    slopes.push_back((above - below) / (2 * kStep));
  }
  return slopes;
}

struct Case {
  const char* name;
  VarlenShape shape;
};

// Lengths per document; heads are query heads over key heads.
VarlenShape Shape(std::vector<int64_t> query_offsets, std::vector<int64_t> key_offsets,
                  int64_t query_heads, int64_t key_heads, int64_t window_left, int64_t window_right,
                  int64_t value_dim = 3) {
  VarlenShape shape;
  shape.total_queries = query_offsets.back();
  shape.query_offsets = std::move(query_offsets);
  shape.key_offsets = std::move(key_offsets);
  shape.query_heads = query_heads;
  shape.key_heads = key_heads;
  shape.head_dim = 3;
  shape.value_dim = value_dim;
  shape.scale = 0.7;
  shape.window_left = window_left;
  shape.window_right = window_right;
  return shape;
}

class VarlenAttentionTest : public ::testing::TestWithParam<Case> {};

TEST_P(VarlenAttentionTest, OutputIsThatOfTheDenseComputation) {
  const VarlenShape& shape = GetParam().shape;
  const Inputs inputs(shape);
  EXPECT_THAT(Attend<double>(shape, inputs).output,
              Pointwise(DoubleNear(1e-13), DenseOutput(shape, inputs)));
  EXPECT_THAT(Attend<float>(shape, inputs).output,
              Pointwise(FloatNear(5e-6f), Cast<float>(DenseOutput(shape, inputs))));
}

TEST_P(VarlenAttentionTest, GradientsAreTheSlopesOfTheDenseComputation) {
  const VarlenShape& shape = GetParam().shape;
  const Inputs inputs(shape);
  const Outcome<double> result = Attend<double>(shape, inputs);
  EXPECT_THAT(result.query_gradient,
              Pointwise(DoubleNear(1e-8), Slopes(shape, inputs, &Inputs::query)));
  EXPECT_THAT(result.key_gradient,
              Pointwise(DoubleNear(1e-8), Slopes(shape, inputs, &Inputs::key)));
  EXPECT_THAT(result.value_gradient,
              Pointwise(DoubleNear(1e-8), Slopes(shape, inputs, &Inputs::value)));
  const Outcome<float> single = Attend<float>(shape, inputs);
  EXPECT_THAT(single.query_gradient,
              Pointwise(FloatNear(3e-5f), Cast<float>(result.query_gradient)));
  EXPECT_THAT(single.key_gradient, Pointwise(FloatNear(3e-5f), Cast<float>(result.key_gradient)));
  EXPECT_THAT(single.value_gradient,
              Pointwise(FloatNear(3e-5f), Cast<float>(result.value_gradient)));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, VarlenAttentionTest,
    ::testing::Values(Case{"Full", Shape({0, 4, 9}, {0, 4, 9}, 2, 2, -1, -1)},
                      Case{"NarrowerValues", Shape({0, 4, 9}, {0, 4, 9}, 2, 1, -1, 0, 2)},
                      Case{"WiderValues", Shape({0, 4, 9}, {0, 4, 9}, 2, 1, -1, 0, 5)},
                      Case{"Causal", Shape({0, 4, 9}, {0, 4, 9}, 2, 2, -1, 0)},
                      Case{"CausalWindow", Shape({0, 6, 9}, {0, 6, 9}, 2, 2, 2, 0)},
                      Case{"TwoSidedWindow", Shape({0, 6, 9}, {0, 6, 9}, 1, 1, 1, 2)},
                      Case{"WindowOfOne", Shape({0, 3, 5}, {0, 3, 5}, 2, 1, 0, 0)},
                      Case{"GroupedHeads", Shape({0, 4, 9}, {0, 4, 9}, 6, 2, -1, 0)},
                      Case{"OneKeyHead", Shape({0, 4, 9}, {0, 4, 9}, 4, 1, -1, 0)},
                      Case{"MoreKeysThanQueries", Shape({0, 2, 5}, {0, 5, 9}, 2, 1, -1, 0)},
                      Case{"MoreQueriesThanKeys", Shape({0, 5, 9}, {0, 2, 5}, 2, 1, -1, 0)},
                      Case{"UnequalLengthsAndWindow", Shape({0, 3, 7}, {0, 6, 9}, 2, 2, 1, 1)},
                      Case{"EmptyDocument", Shape({0, 3, 3, 7}, {0, 3, 3, 7}, 2, 1, -1, 0)},
                      Case{"NoKeys", Shape({0, 3, 5}, {0, 0, 2}, 2, 1, -1, -1)},
                      Case{"NoQueries", Shape({0, 0, 2}, {0, 3, 5}, 2, 1, -1, -1)},
                      Case{"SingleTokens", Shape({0, 1, 2, 3}, {0, 1, 2, 3}, 2, 1, -1, 0)}),
    [](const auto& info) { return info.param.name; });

TEST(VarlenShapeTest, UnequalLengthsAreAlignedAtTheEnd) {
  const VarlenShape causal = Shape({0, 2}, {0, 5}, 1, 1, -1, 0);
  EXPECT_EQ(causal.VisibleKeys(0, 0), (KeyRange{0, 4}));
  EXPECT_EQ(causal.VisibleKeys(0, 1), (KeyRange{0, 5}));
  const VarlenShape window = Shape({0, 2}, {0, 5}, 1, 1, 1, 0);
  EXPECT_EQ(window.VisibleKeys(0, 0), (KeyRange{2, 4}));
}

TEST(VarlenAttentionEdgeTest, QueryThatSeesNoKeyGetsZerosAndAnInfiniteLogsumexp) {
  const VarlenShape shape = Shape({0, 3}, {0, 1}, 1, 1, -1, 0);
  const Outcome<double> result = Attend<double>(shape, Inputs(shape));
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(result.logsumexp[0], infinity);
  EXPECT_EQ(result.logsumexp[1], infinity);
  EXPECT_LT(result.logsumexp[2], infinity);
  EXPECT_THAT(std::vector<double>(result.output.begin(), result.output.begin() + 6), Each(0.0));
  EXPECT_THAT(std::vector<double>(result.query_gradient.begin(), result.query_gradient.begin() + 6),
              Each(0.0));
}

TEST(VarlenAttentionEdgeTest, LargeScoresDoNotOverflow) {
  const VarlenShape shape = Shape({0, 4}, {0, 4}, 1, 1, -1, 0);
  Inputs inputs(shape);
  for (double& x : inputs.query) x *= 1e4;
  for (float x : Attend<float>(shape, inputs).output) EXPECT_TRUE(std::isfinite(x)) << x;
}

TEST(VarlenAttentionEdgeTest, NanInOneDocumentStaysInIt) {
  const VarlenShape shape = Shape({0, 2, 4}, {0, 2, 4}, 1, 1, -1, 0);
  Inputs inputs(shape);
  inputs.key[0] = std::numeric_limits<double>::quiet_NaN();
  const Outcome<double> result = Attend<double>(shape, inputs);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(std::isnan(result.output[i])) << i;
  for (int i = 6; i < 12; ++i) EXPECT_FALSE(std::isnan(result.output[i])) << i;
}

TEST(VarlenArgumentsTest, MaximaMustReachTheLongestDocumentAndOffsetsAllRows) {
  const VarlenShape shape = Shape({0, 2, 9}, {0, 4, 9}, 1, 1, -1, 0);
  const auto arguments = [&](const VarlenLengths& lengths) {
    std::string names;
    for (const VarlenDifference& difference : DifferencesOnGpu(shape, lengths))
      names += difference.argument + " ";
    return names;
  };
  EXPECT_EQ(arguments({7, 5, 9, 9}), "");
  EXPECT_EQ(arguments({99, 99, 9, 9}), "");
  EXPECT_EQ(arguments({6, 5, 9, 9}), "max_q ");
  EXPECT_EQ(arguments({7, 4, 9, 9}), "max_k ");
  EXPECT_EQ(arguments({7, 5, 10, 9}), "cu_seqlens_q ");
  EXPECT_EQ(arguments({7, 5, 9, 12}), "cu_seqlens_k ");
  EXPECT_EQ(DifferencesOnGpu(shape, {6, 5, 9, 9})[0].what,
            "max_q is 6, but document 1 has 7 tokens: a GPU does not compute the rest");
  const VarlenShape late = Shape({1, 9}, {0, 9}, 1, 1, -1, 0);
  EXPECT_EQ(DifferencesOnGpu(late, {9, 9, 9, 9})[0].what,
            "cu_seqlens_q runs from 1 to 9 and there are 9 tokens: a GPU leaves the other rows as "
            "allocated");
}

}  // namespace
}  // namespace bkm
