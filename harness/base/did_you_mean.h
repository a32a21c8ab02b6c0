// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_DID_YOU_MEAN_H_
#define HARNESS_BASE_DID_YOU_MEAN_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace bkm {

// ": did you mean 'torch'?" when one of `known` is close to `name`, else " (known: a, b, c)".
std::string DidYouMean(absl::string_view name, const std::vector<std::string>& known);

}  // namespace bkm

#endif  // HARNESS_BASE_DID_YOU_MEAN_H_
