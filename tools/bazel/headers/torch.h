// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef TOOLS_BAZEL_HEADERS_TORCH_H_
#define TOOLS_BAZEL_HEADERS_TORCH_H_

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>

#include "tools/bazel/headers/product.h"

#endif  // TOOLS_BAZEL_HEADERS_TORCH_H_
