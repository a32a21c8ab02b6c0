// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/status_macros.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace bkm {

absl::Status WithContext(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  absl::Status wider(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { wider.SetPayload(type, payload); });
  return wider;
}

}  // namespace bkm
