// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/runtime_preparation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>

#include "absl/strings/str_cat.h"
#include "harness/runner/fake_clock.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const RuntimePreparation::Stop kNever = [] { return false; };

RuntimeLock LockOf(const std::string& package) {
  return {.runtime = "cpu",
          .python = "3.11",
          .cutoff = "2026-07-01T00:00:00Z",
          .packages = {{package, "1", {"ab"}}}};
}

// Answers by the request's torch. A call lasts until `together` calls have run at once and the user
// was seen to interrupt `stops` times.
class FakeRuntimeProvider : public RuntimeProvider {
 public:
  std::string KeyOf(const RuntimeRequest& request) const override { return request.torch; }
  absl::StatusOr<std::optional<RuntimeLock>> FindLock(const RuntimeRequest& request) override {
    if (!cached.contains(request.torch)) return std::nullopt;
    return LockOf(request.torch);
  }
  Resolution Resolve(const RuntimeRequest& request) override {
    Call(request.torch);
    if (request.torch == "offline") return absl::UnavailableError("no network");
    if (request.torch == "conflict") return NoSolutionOf(request, "numpy<2 against numpy>=2");
    return LockOf(request.torch);
  }
  std::optional<fs::path> FindEnvironment(const RuntimeLock& lock) const override {
    if (!cached.contains(lock.packages[0].name)) return std::nullopt;
    return "/cached/python";
  }
  absl::StatusOr<fs::path> CreateEnvironment(const RuntimeLock& lock) override {
    const std::string& name = lock.packages[0].name;
    Call(name);
    if (name == "unbuildable") return absl::AbortedError("it does not build");
    return fs::path("/made") / name;
  }

  // The user interrupts while `together` calls run.
  bool Interrupted() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (most < together) return false;
    if (stops > 0) --stops;
    changed_.notify_all();
    return true;
  }

  std::set<std::string> cached;
  size_t together = 1;
  int stops = 0;
  size_t most = 0;                 // calls that ran at once
  std::vector<std::string> calls;  // in the order of their starts

 private:
  void Call(const std::string& name) {
    std::unique_lock<std::mutex> lock(mutex_);
    calls.push_back(name);
    most = std::max(most, ++running_);
    changed_.notify_all();
    // Generous: only a broken implementation waits as long.
    changed_.wait_for(lock, std::chrono::seconds(20),
                      [&] { return most >= together && stops == 0; });
    --running_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  size_t running_ = 0;
};

class RecordingObserver : public RunObserver {
 public:
  void OnSetUp(const std::string& what) override { lines.push_back(what); }
  std::vector<std::string> lines;
};

std::vector<RuntimeRequest> Requests(const std::vector<std::string>& torches) {
  std::vector<RuntimeRequest> requests;
  for (const std::string& torch : torches) {
    requests.push_back({.policy = {.name = "cpu"}, .torch = torch});
  }
  return requests;
}

std::vector<RuntimeRequest> ManyRequests(int count) {
  std::vector<std::string> torches;
  for (int i = 0; i < count; ++i) torches.push_back(absl::StrCat("2.", i));
  return Requests(torches);
}

class RuntimePreparationTest : public ::testing::Test {
 protected:
  FakeRuntimeProvider provider_;
  RecordingObserver observer_;
  FakeClock clock_;
  RuntimePreparation preparation_{provider_, observer_, clock_, RuntimeLimits()};
};

TEST_F(RuntimePreparationTest, EightRuntimesAreResolvedAtOnceAndNoMore) {
  provider_.together = 8;
  const Resolutions resolutions = preparation_.Resolve(ManyRequests(20), kNever);
  EXPECT_EQ(provider_.most, 8u);
  EXPECT_THAT(provider_.calls, SizeIs(20));
  EXPECT_THAT(resolutions.keys, SizeIs(20));
}

TEST_F(RuntimePreparationTest, EachRequestGetsItsOwnResolutionWhateverEndsFirst) {
  provider_.together = 8;
  const std::vector<RuntimeRequest> requests = ManyRequests(20);
  const Resolutions resolutions = preparation_.Resolve(requests, kNever);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(resolutions.keys[i], requests[i].torch);
    EXPECT_EQ(std::get<RuntimeLock>(*resolutions.by_key.at(resolutions.keys[i])),
              LockOf(requests[i].torch));
  }
}

TEST_F(RuntimePreparationTest, EqualRequestsAreResolvedOnce) {
  const Resolutions resolutions =
      preparation_.Resolve(Requests({"2.1", "2.2", "2.1", "2.1"}), kNever);
  std::sort(provider_.calls.begin(), provider_.calls.end());
  EXPECT_THAT(provider_.calls, ElementsAre("2.1", "2.2"));
  EXPECT_THAT(resolutions.keys, ElementsAre("2.1", "2.2", "2.1", "2.1"));
}

TEST_F(RuntimePreparationTest, AFailureStopsNoOtherResolution) {
  const Resolutions resolutions =
      preparation_.Resolve(Requests({"offline", "conflict", "2.1", "2.2"}), kNever);
  EXPECT_EQ(resolutions.by_key.at("offline").status(), absl::UnavailableError("no network"));
  EXPECT_EQ(std::get<NoSolution>(*resolutions.by_key.at("conflict")).complaint,
            "numpy<2 against numpy>=2");
  EXPECT_TRUE(std::holds_alternative<RuntimeLock>(*resolutions.by_key.at("2.1")));
  EXPECT_TRUE(std::holds_alternative<RuntimeLock>(*resolutions.by_key.at("2.2")));
}

TEST_F(RuntimePreparationTest, ProgressIsReportedAsResolutionsEnd) {
  preparation_.Resolve(Requests({"2.1", "conflict", "offline"}), kNever);
  ASSERT_THAT(observer_.lines, SizeIs(4));
  EXPECT_EQ(observer_.lines[0], "resolving 3 runtimes (3 at once)");
  EXPECT_THAT(observer_.lines[3], HasSubstr(" in 0.0 s, 3 of 3"));
  EXPECT_THAT(observer_.lines, Contains(HasSubstr("resolved cpu as of 2026-06-30 in 0.0 s, ")));
  EXPECT_THAT(observer_.lines, Contains(HasSubstr("found no solution for cpu in 0.0 s, ")));
  EXPECT_THAT(observer_.lines, Contains(HasSubstr("could not resolve cpu in 0.0 s, ")));
}

TEST_F(RuntimePreparationTest, WhatIsCachedIsNeitherResolvedNorReported) {
  provider_.cached = {"2.1"};
  const Resolutions resolutions = preparation_.Resolve(Requests({"2.1"}), kNever);
  EXPECT_EQ(std::get<RuntimeLock>(*resolutions.by_key.at("2.1")), LockOf("2.1"));
  const RuntimeLock lock = LockOf("2.1");
  EXPECT_EQ(*preparation_.CreateEnvironments({&lock}, kNever).at(lock.Key()), "/cached/python");
  EXPECT_THAT(provider_.calls, IsEmpty());
  EXPECT_THAT(observer_.lines, IsEmpty());
}

TEST_F(RuntimePreparationTest, AfterAnInterruptNoFurtherResolutionStarts) {
  provider_.together = 8;
  provider_.stops = 2;  // the second time, the first was heard
  const Resolutions resolutions =
      preparation_.Resolve(ManyRequests(20), [&] { return provider_.Interrupted(); });
  EXPECT_THAT(provider_.calls, SizeIs(8));
  EXPECT_TRUE(resolutions.by_key.at("2.0").ok());
  EXPECT_EQ(resolutions.by_key.at("2.19").status(), absl::CancelledError("interrupted"));
}

TEST_F(RuntimePreparationTest, FourEnvironmentsAreCreatedAtOnceAndNoMore) {
  provider_.together = 4;
  std::vector<RuntimeLock> locks;
  for (int i = 0; i < 10; ++i) locks.push_back(LockOf(absl::StrCat("torch-", i)));
  std::vector<const RuntimeLock*> wanted;
  for (const RuntimeLock& lock : locks) wanted.insert(wanted.end(), {&lock, &lock});
  const auto environments = preparation_.CreateEnvironments(wanted, kNever);
  EXPECT_EQ(provider_.most, 4u);
  EXPECT_THAT(provider_.calls, SizeIs(10));
  for (const RuntimeLock& lock : locks)
    EXPECT_EQ(*environments.at(lock.Key()), fs::path("/made") / lock.packages[0].name);
  EXPECT_EQ(observer_.lines[0], "creating 10 environments (4 at once)");
}

TEST_F(RuntimePreparationTest, AnEnvironmentThatCannotBeCreatedStopsNoOther) {
  const RuntimeLock good = LockOf("good"), bad = LockOf("unbuildable");
  const auto environments = preparation_.CreateEnvironments({&bad, &good}, kNever);
  EXPECT_TRUE(absl::IsAborted(environments.at(bad.Key()).status()));
  EXPECT_EQ(*environments.at(good.Key()), "/made/good");
  EXPECT_THAT(observer_.lines, Contains(AllOf(HasSubstr("could not create environment " +
                                                        bad.Key().substr(0, 12) + " in 0.0 s, "),
                                              HasSubstr(" of 2"))));
}

}  // namespace
}  // namespace bkm
