// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef TOOLS_BAZEL_HEADERS_COMMAND_H_
#define TOOLS_BAZEL_HEADERS_COMMAND_H_

#include <CLI/CLI.hpp>

#include "tools/bazel/headers/product.h"

#endif  // TOOLS_BAZEL_HEADERS_COMMAND_H_
