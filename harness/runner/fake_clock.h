// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_FAKE_CLOCK_H_
#define HARNESS_RUNNER_FAKE_CLOCK_H_

#include "harness/base/clock.h"

namespace bkm {

// Shows the time that the test sets.
class FakeClock : public Clock {
 public:
  absl::Time Now() const override { return now; }
  absl::Duration Elapsed() const override { return elapsed; }

  absl::Time now = absl::UnixEpoch();
  absl::Duration elapsed;
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_FAKE_CLOCK_H_
