// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_SYSTEM_ERROR_H_
#define HARNESS_CELL_SYSTEM_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace bkm {

// UNAVAILABLE, with what failed ("cannot fork") and errno in words. Call it before errno changes.
absl::Status SystemError(absl::string_view what);

}  // namespace bkm

#endif  // HARNESS_CELL_SYSTEM_ERROR_H_
