// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_CONCURRENT_JOBS_H_
#define HARNESS_RUNNER_CONCURRENT_JOBS_H_

#include <cstddef>
#include <functional>

#include "absl/time/time.h"
#include "harness/base/clock.h"

namespace bkm {

// Jobs 0 to count - 1, to be run on threads, at most `at_once` at a time.
struct ConcurrentJobs {
  size_t count = 0;
  int at_once = 1;
  std::function<void(size_t job)> run;  // on a thread of its own
  // On the caller's thread, in the order in which the jobs end.
  std::function<void(size_t job, absl::Duration took)> ended;
  // Asked on the caller's thread, several times a second. Once true, no further job starts.
  std::function<bool()> stop;
};

// Starts the jobs in their order. Returns when all that were started have ended.
void RunConcurrently(const ConcurrentJobs& jobs, const Clock& clock);

}  // namespace bkm

#endif  // HARNESS_RUNNER_CONCURRENT_JOBS_H_
