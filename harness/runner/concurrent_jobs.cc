// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/concurrent_jobs.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace bkm {
namespace {

// What the threads and the caller share.
class JobQueue {
 public:
  explicit JobQueue(const ConcurrentJobs& jobs, const Clock& clock) : jobs_(jobs), clock_(clock) {}

  // Runs jobs until none is left. On a thread.
  void Work() {
    for (size_t job = 0; Take(job);) {
      const absl::Duration start = clock_.Elapsed();
      jobs_.run(job);
      const absl::Duration took = clock_.Elapsed() - start;
      const std::lock_guard<std::mutex> lock(mutex_);
      --running_;
      ended_.emplace_back(job, took);
      changed_.notify_one();
    }
  }

  // Reports what ended until nothing runs and nothing is left to start. On the caller's thread.
  void Report() {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait_for(lock, std::chrono::milliseconds(100), [&] { return !ended_.empty(); });
      std::deque<std::pair<size_t, absl::Duration>> ended;
      ended.swap(ended_);
      const bool done = running_ == 0 && next_ == jobs_.count;
      lock.unlock();
      for (const auto& [job, took] : ended) jobs_.ended(job, took);
      if (done) return;
      if (jobs_.stop()) Stop();
    }
  }

 private:
  bool Take(size_t& job) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (next_ == jobs_.count) return false;
    job = next_++;
    ++running_;
    return true;
  }
  void Stop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    next_ = jobs_.count;
  }

  const ConcurrentJobs& jobs_;
  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t next_ = 0;  // job to start
  int running_ = 0;
  std::deque<std::pair<size_t, absl::Duration>> ended_;  // and not reported
};

}  // namespace

void RunConcurrently(const ConcurrentJobs& jobs, const Clock& clock) {
  if (jobs.count == 0) return;
  JobQueue queue(jobs, clock);
  std::vector<std::thread> threads;
  const size_t wanted = std::min(jobs.count, static_cast<size_t>(std::max(1, jobs.at_once)));
  for (size_t i = 0; i < wanted; ++i) threads.emplace_back([&queue] { queue.Work(); });
  queue.Report();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace bkm
