// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/system_error.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace bkm {

absl::Status SystemError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

}  // namespace bkm
