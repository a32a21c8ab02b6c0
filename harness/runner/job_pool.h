// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_JOB_POOL_H_
#define HARNESS_RUNNER_JOB_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "harness/base/clock.h"

namespace bkm {

// Jobs of one kind, such as resolutions, of which a limited number runs at once.
struct Job {
  size_t kind = 0;
  std::function<void()> run;                       // on a thread of its own
  std::function<void(absl::Duration took)> ended;  // on the pool's owner's thread
};

// Runs jobs on threads: of each kind at most so many at once, in the order in which they were
// added. All functions are called on one thread, the owner's. Threads and the processes that they
// start give way to others (nice 10): cells that run meanwhile come first.
class JobPool {
 public:
  // limits[kind] jobs of a kind run at once.
  JobPool(std::vector<int> limits, const Clock& clock);
  // Waits for the jobs that run. Their `ended` is not called.
  ~JobPool();

  void Add(Job job);
  // Calls `ended` of the jobs that have ended, in that order, and starts others in their place. If
  // none has ended, waits up to `wait` for one that runs. Returns whether any had ended.
  bool Advance(absl::Duration wait);
  // Forgets the jobs that have not started.
  void Stop();
  // Whether a job runs, waits, or has ended without having been reported.
  bool busy() const { return !running_.empty() || !waiting_.empty(); }

 private:
  struct Running {
    Job job;
    absl::Duration took;
    std::thread thread;
  };
  void StartSome();

  const std::vector<int> limits_;
  const Clock& clock_;
  std::deque<Job> waiting_;
  std::list<Running> running_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Running*> ended_;  // guarded by mutex_
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_JOB_POOL_H_
