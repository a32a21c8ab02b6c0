// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REFERENCE_BF16_PRODUCTS_H_
#define HARNESS_REFERENCE_BF16_PRODUCTS_H_

namespace bkm {

// Makes this process compute products of bf16 matrices (mm, bmm, addmm, baddbmm) in fp32 and round
// them once. Without oneDNN's bf16 kernels, which need AVX-512, LibTorch sums them element by
// element: the same precision, many times slower.
void ComputeBF16ProductsInFP32();

// The same, but only if oneDNN has no bf16 kernels on this machine.
void ComputeBF16ProductsFast();

}  // namespace bkm

#endif  // HARNESS_REFERENCE_BF16_PRODUCTS_H_
