// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/status_macros.h"

#include "absl/strings/str_cat.h"

namespace bkm {

absl::Status WithContext(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

}  // namespace bkm
