// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// What most sources include, parsed once (tools/bazel/precompiled_header.bzl). A source still
// includes what it uses: `tools/bkm test --deep` compiles all of them without this header.
#ifndef TOOLS_BAZEL_HEADERS_PRODUCT_H_
#define TOOLS_BAZEL_HEADERS_PRODUCT_H_

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"

#endif  // TOOLS_BAZEL_HEADERS_PRODUCT_H_
