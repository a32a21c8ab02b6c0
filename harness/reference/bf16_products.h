// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REFERENCE_BF16_PRODUCTS_H_
#define HARNESS_REFERENCE_BF16_PRODUCTS_H_

namespace bkm {

// From now on, products of bf16 matrices (mm, bmm, addmm, baddbmm) are computed in fp32 and rounded
// once, for this process. Without oneDNN's bf16, which wants AVX-512, LibTorch sums them element by
// element: the same precision, many times slower.
void ComputeBF16ProductsInFP32();

// The same, where oneDNN computes none here; else LibTorch's own are left as they are.
void ComputeBF16ProductsFast();

}  // namespace bkm

#endif  // HARNESS_REFERENCE_BF16_PRODUCTS_H_
