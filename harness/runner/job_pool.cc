// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/job_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace bkm {
namespace {

// How much nicer a job is than its owner.
constexpr int kNicer = 10;
constexpr int kNicest = 19;

// Of this thread only: Linux keeps the value for each thread.
void GiveWay() {
  const auto thread = static_cast<id_t>(::gettid());
  ::setpriority(PRIO_PROCESS, thread,
                std::min(::getpriority(PRIO_PROCESS, thread) + kNicer, kNicest));
}

}  // namespace

JobPool::JobPool(std::vector<int> limits, const Clock& clock)
    : limits_(std::move(limits)), clock_(clock) {}

JobPool::~JobPool() {
  for (Running& running : running_) running.thread.join();
}

void JobPool::Add(Job job) {
  waiting_.push_back(std::move(job));
  StartSome();
}

void JobPool::StartSome() {
  std::vector<int> room = limits_;
  for (const Running& running : running_) --room[running.job.kind];
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (room[it->kind] <= 0) {
      ++it;
      continue;
    }
    --room[it->kind];
    Running& started = running_.emplace_back();
    started.job = std::move(*it);
    it = waiting_.erase(it);
    started.thread = std::thread([this, &started] {
      GiveWay();
      const absl::Duration start = clock_.Elapsed();
      started.job.run();
      started.took = clock_.Elapsed() - start;
      const std::lock_guard<std::mutex> lock(mutex_);
      ended_.push_back(&started);
      changed_.notify_one();
    });
  }
}

bool JobPool::Advance(absl::Duration wait) {
  std::deque<Running*> ended;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!running_.empty())
      changed_.wait_for(lock, absl::ToChronoMilliseconds(wait), [&] { return !ended_.empty(); });
    ended.swap(ended_);
  }
  for (Running* running : ended) {
    running->thread.join();
    const Job job = std::move(running->job);
    const absl::Duration took = running->took;
    running_.remove_if([&](const Running& each) { return &each == running; });
    job.ended(took);
  }
  StartSome();
  return !ended.empty();
}

void JobPool::Stop() { waiting_.clear(); }

}  // namespace bkm
