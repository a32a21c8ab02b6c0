// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_CLOCK_H_
#define HARNESS_BASE_CLOCK_H_

#include <cstdint>

#include "absl/time/time.h"

namespace bkm {

// Tells the time, so that tests can set it. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // The system's time. It may jump.
  virtual absl::Time Now() const = 0;
  // The time since a fixed moment. It never goes back: the difference of two readings is a
  // duration.
  virtual absl::Duration Elapsed() const = 0;
};

class RealClock : public Clock {
 public:
  absl::Time Now() const override;
  absl::Duration Elapsed() const override;
  // From now on, Now() of this process jumps at each reading (harness/base/disturbance.h).
  static void LetJump(uint64_t seed);
};

}  // namespace bkm

#endif  // HARNESS_BASE_CLOCK_H_
