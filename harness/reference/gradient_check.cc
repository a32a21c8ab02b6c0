// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/gradient_check.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cmath>

namespace bkm {

using at::Tensor;

namespace {

constexpr double kStep = 1e-6;

std::vector<Tensor> LeavesOf(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.clone().requires_grad_(true));
  return leaves;
}

}  // namespace

Tensor Random(at::IntArrayRef sizes, uint64_t seed) {
  return at::randn(sizes, at::make_generator<at::CPUGeneratorImpl>(seed), at::kDouble);
}

double At(const Tensor& x, at::IntArrayRef index) {
  Tensor element = x;
  for (const int64_t i : index) element = element[i];
  return element.item<double>();
}

void ExpectClose(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  EXPECT_LT((actual - expected).abs().max().item<double>(), 1e-12);
}

void CheckGradients(const TensorFunction& f, const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> leaves = LeavesOf(inputs);
  const Tensor output = f(leaves);
  const Tensor weighting = Random(output.sizes(), 99);
  (output * weighting).sum().backward();
  const auto value = [&](const std::vector<Tensor>& at) {
    return (f(at) * weighting).sum().item<double>();
  };
  for (size_t k = 0; k < inputs.size(); ++k) {
    std::vector<Tensor> moved = inputs;
    moved[k] = inputs[k].clone();
    const Tensor flat = moved[k].view(-1);
    const Tensor gradient = leaves[k].grad().contiguous().view(-1);
    for (int64_t i = 0; i < flat.numel(); ++i) {
      flat[i] += kStep;
      const double above = value(moved);
      flat[i] -= 2 * kStep;
      const double below = value(moved);
      flat[i] += kStep;
      EXPECT_NEAR(gradient[i].item<double>(), (above - below) / (2 * kStep), 1e-7)
          << "input " << k << ", element " << i;
    }
  }
}

void CheckGradientsAlongDirections(const TensorFunction& f, const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> leaves = LeavesOf(inputs);
  f(leaves).square().sum().backward();
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Tensor direction = Random(inputs[k].sizes(), 1000 + k);
    const auto value = [&](double step) {
      std::vector<Tensor> moved = inputs;
      moved[k] = inputs[k] + step * direction;
      return f(moved).square().sum().item<double>();
    };
    const double expected = (value(kStep) - value(-kStep)) / (2 * kStep);
    // An expert that no token chose has no gradient.
    const double actual =
        leaves[k].grad().defined() ? (leaves[k].grad() * direction).sum().item<double>() : 0;
    EXPECT_NEAR(actual, expected, 1e-6 * (1 + std::abs(expected))) << "input " << k;
  }
}

}  // namespace bkm
