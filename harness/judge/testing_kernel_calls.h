// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_TESTING_KERNEL_CALLS_H_
#define HARNESS_JUDGE_TESTING_KERNEL_CALLS_H_

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "harness/judge/kernel_calls.h"

namespace bkm {

// The call that a layer of gemma2 makes for these documents, as transformers makes it.
inline ObservedKernelCalls RightCall(int64_t layer, int64_t step,
                                     const DocumentLengths& documents) {
  const ModelShape shape = *FindModelShape("gemma2");
  std::vector<int64_t> borders = {0};
  for (const int64_t length : documents) borders.push_back(borders.back() + length);
  const int64_t longest = *std::max_element(documents.begin(), documents.end());
  const int64_t left = shape.WindowOf(layer) > 0 ? shape.WindowOf(layer) - 1 : -1;
  return {.layers = {layer},
          .calls = {1},
          .step = step,
          .dtype = "bfloat16",
          .query_shape = {borders.back(), shape.heads, shape.head_dim},
          .key_shape = {borders.back(), shape.kv_heads, shape.head_dim},
          .query_borders = borders,
          .key_borders = borders,
          .longest_query = longest,
          .longest_key = longest,
          .causal = true,
          .window = {left, left},
          .softcap = shape.attention_softcap,
          .scale = shape.SoftmaxScale()};
}

}  // namespace bkm

#endif  // HARNESS_JUDGE_TESTING_KERNEL_CALLS_H_
