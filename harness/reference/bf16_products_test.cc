// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/bf16_products.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <vector>

namespace bkm {
namespace {

using at::Tensor;

// One result of each replaced product.
std::vector<Tensor> Products(const Tensor& a, const Tensor& b) {
  const Tensor added = at::ones({5, 3}, a.options());
  return {at::mm(a[0], b[0]), at::bmm(a, b), at::addmm(added, a[0], b[0], 2, 3),
          at::baddbmm(added, a, b, 1, 2)};
}

TEST(BF16ProductsTest, AreFP32ProductsRoundedOnceAndOthersStayAsTheyAre) {
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(1);
  const Tensor a = at::randn({2, 5, 64}, generator).to(at::kBFloat16);
  const Tensor b = at::randn({2, 64, 3}, generator).to(at::kBFloat16);
  const std::vector<Tensor> exact = Products(a.to(at::kDouble), b.to(at::kDouble));
  const std::vector<Tensor> wide = Products(a.to(at::kFloat), b.to(at::kFloat));

  ComputeBF16ProductsInFP32();

  const std::vector<Tensor> rounded = Products(a, b);
  const std::vector<Tensor> same = Products(a.to(at::kFloat), b.to(at::kFloat));
  for (size_t i = 0; i < exact.size(); ++i) {
    EXPECT_EQ(rounded[i].scalar_type(), at::kBFloat16) << i;
    EXPECT_TRUE(at::equal(rounded[i], wide[i].to(at::kBFloat16))) << i;
    // bf16's unit roundoff, 2^-8.
    EXPECT_TRUE(at::allclose(rounded[i].to(at::kDouble), exact[i], 1.0 / 256, 1e-5)) << i;
    EXPECT_TRUE(at::equal(same[i], wide[i])) << i;
  }
}

}  // namespace
}  // namespace bkm
