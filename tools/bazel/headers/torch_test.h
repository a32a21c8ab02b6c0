// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef TOOLS_BAZEL_HEADERS_TORCH_TEST_H_
#define TOOLS_BAZEL_HEADERS_TORCH_TEST_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/bazel/headers/torch.h"

#endif  // TOOLS_BAZEL_HEADERS_TORCH_TEST_H_
