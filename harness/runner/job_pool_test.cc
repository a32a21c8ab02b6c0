// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/job_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "harness/runner/fake_clock.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Jobs wait for the test to open it.
class Gate {
 public:
  void Open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void Pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

class JobPoolTest : public ::testing::Test {
 protected:
  Job Numbered(int number, size_t kind = 0, Gate* gate = nullptr) {
    return {.kind = kind,
            .run =
                [this, gate] {
                  ++started_;
                  if (gate) gate->Pass();
                },
            .ended = [this, number](absl::Duration) { ended_.push_back(number); }};
  }
  void Drain(JobPool& pool) {
    while (pool.busy()) pool.Advance(absl::Seconds(1));
  }

  FakeClock clock_;
  std::atomic<int> started_ = 0;
  std::vector<int> ended_;
};

TEST_F(JobPoolTest, JobsOfAKindRunInTheirOrder) {
  JobPool pool({1}, clock_);
  for (int i = 0; i < 5; ++i) pool.Add(Numbered(i));
  Drain(pool);
  EXPECT_THAT(ended_, ElementsAre(0, 1, 2, 3, 4));
}

TEST_F(JobPoolTest, AKindThatIsFullHoldsNoOtherUp) {
  JobPool pool({1, 1}, clock_);
  Gate gate;
  pool.Add(Numbered(0, 0, &gate));
  pool.Add(Numbered(1, 0));
  pool.Add(Numbered(2, 1));
  while (ended_.empty()) pool.Advance(absl::Seconds(1));
  EXPECT_THAT(ended_, ElementsAre(2));
  gate.Open();
  Drain(pool);
  EXPECT_THAT(ended_, ElementsAre(2, 0, 1));
}

TEST_F(JobPoolTest, AdvanceDoesNotWaitForWhatDoesNotRun) {
  JobPool pool({1}, clock_);
  EXPECT_FALSE(pool.Advance(absl::Hours(1)));
  EXPECT_FALSE(pool.busy());
}

TEST_F(JobPoolTest, StopForgetsWhatHasNotStarted) {
  JobPool pool({1}, clock_);
  Gate gate;
  pool.Add(Numbered(0, 0, &gate));
  pool.Add(Numbered(1));
  pool.Stop();
  gate.Open();
  Drain(pool);
  EXPECT_THAT(ended_, ElementsAre(0));
}

TEST_F(JobPoolTest, DestructionWaitsForWhatRunsAndReportsNothing) {
  Gate gate;
  auto pool = std::make_unique<JobPool>(std::vector<int>{2}, clock_);
  pool->Add(Numbered(0, 0, &gate));
  pool->Add(Numbered(1));
  gate.Open();
  pool.reset();
  EXPECT_EQ(started_, 2);
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(JobPoolTest, JobsGiveWayAndTheOwnerDoesNot) {
  const int own = ::getpriority(PRIO_PROCESS, 0);
  int of_job = own;
  JobPool pool({1}, clock_);
  pool.Add({.run = [&of_job] { of_job = ::getpriority(PRIO_PROCESS, 0); },
            .ended = [](absl::Duration) {}});
  Drain(pool);
  EXPECT_EQ(of_job, std::min(own + 10, 19));
  EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), own);
}

TEST_F(JobPoolTest, AJobMayAddAnotherWhenItEnds) {
  JobPool pool({1}, clock_);
  pool.Add({.run = [] {}, .ended = [&](absl::Duration) { pool.Add(Numbered(7)); }});
  Drain(pool);
  EXPECT_THAT(ended_, ElementsAre(7));
}

}  // namespace
}  // namespace bkm
