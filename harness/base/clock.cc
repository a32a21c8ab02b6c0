// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/clock.h"

#include <atomic>
#include <chrono>

#include "absl/time/clock.h"

namespace bkm {

namespace {

std::atomic<uint64_t> jumps = 0;  // 0: the clock does not jump

}  // namespace

absl::Time RealClock::Now() const {
  if (jumps == 0) return absl::Now();
  // A linear congruential generator: its lowest bits are poor, and not used.
  const uint64_t next = jumps = jumps * 6364136223846793005u + 1442695040888963407u;
  const int64_t days = static_cast<int64_t>((next >> 33) % 14600) - 7300;
  return absl::Now() + absl::Hours(24) * days;
}

void RealClock::LetJump(uint64_t seed) { jumps = seed | 1; }

absl::Duration RealClock::Elapsed() const {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace bkm
