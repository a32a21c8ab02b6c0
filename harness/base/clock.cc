// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace bkm {

absl::Time RealClock::Now() const { return absl::Now(); }

absl::Duration RealClock::Elapsed() const {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace bkm
