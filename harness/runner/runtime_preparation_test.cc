// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/runtime_preparation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "harness/runner/fake_clock.h"
#include "harness/runner/fake_runtime_provider.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RecordingObserver : public RunObserver {
 public:
  void OnSetUp(const std::string& what) override { lines.push_back(what); }
  std::vector<std::string> lines;
};

RuntimeRequest Request(const std::string& torch) {
  return {.policy = {.name = "cpu"}, .torch = torch};
}

class RuntimePreparationTest : public ::testing::Test {
 protected:
  // Waits until nothing is left to do.
  void Drain() {
    while (preparation_.busy()) preparation_.Advance(absl::Seconds(1));
  }
  void ResolveAll(const std::vector<std::string>& torches) {
    for (const std::string& torch : torches) preparation_.Resolve(Request(torch));
    Drain();
  }
  void CreateAll(const std::vector<std::string>& packages) {
    for (const std::string& package : packages)
      preparation_.CreateEnvironment(std::make_shared<const RuntimeLock>(LockOf(package)));
    Drain();
  }
  const absl::StatusOr<fs::path>& EnvironmentOf(const std::string& package) {
    return *preparation_.environment(LockOf(package).Key());
  }

  FakeRuntimeProvider provider_;
  RecordingObserver observer_;
  FakeClock clock_;
  RuntimePreparation preparation_{provider_, observer_, clock_, RuntimeLimits()};
};

std::vector<std::string> Names(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(absl::StrCat("2.", i));
  return names;
}

TEST_F(RuntimePreparationTest, EightRuntimesAreResolvedAtOnceAndNoMore) {
  provider_.together = 8;
  ResolveAll(Names(20));
  EXPECT_EQ(provider_.most, 8u);
  EXPECT_THAT(provider_.calls, SizeIs(20));
}

TEST_F(RuntimePreparationTest, EachRequestGetsItsOwnResolutionWhateverEndsFirst) {
  provider_.together = 8;
  ResolveAll(Names(20));
  for (const std::string& name : Names(20))
    EXPECT_EQ(std::get<RuntimeLock>(**preparation_.resolution(name)), LockOf(name));
}

TEST_F(RuntimePreparationTest, EqualRequestsAreResolvedOnce) {
  ResolveAll({"2.1", "2.2", "2.1", "2.1"});
  ResolveAll({"2.1"});
  std::sort(provider_.calls.begin(), provider_.calls.end());
  EXPECT_THAT(provider_.calls, ElementsAre("2.1", "2.2"));
}

TEST_F(RuntimePreparationTest, NothingIsKnownUntilItEnds) {
  preparation_.Resolve(Request("2.1"));
  EXPECT_EQ(preparation_.resolution("2.1"), nullptr);
  EXPECT_TRUE(preparation_.resolving());
  Drain();
  EXPECT_NE(preparation_.resolution("2.1"), nullptr);
  EXPECT_FALSE(preparation_.resolving());
}

TEST_F(RuntimePreparationTest, AFailureStopsNoOtherResolutionAndIsTriedAgain) {
  ResolveAll({"offline", "conflict", "2.1", "2.2"});
  EXPECT_EQ(preparation_.resolution("offline")->status(), absl::UnavailableError("no network"));
  EXPECT_EQ(std::get<NoSolution>(**preparation_.resolution("conflict")).complaint,
            "numpy<2 against numpy>=2");
  EXPECT_TRUE(std::holds_alternative<RuntimeLock>(**preparation_.resolution("2.1")));
  provider_.calls.clear();
  ResolveAll({"offline", "conflict", "2.1"});
  EXPECT_THAT(provider_.calls, ElementsAre("offline"));
}

TEST_F(RuntimePreparationTest, ProgressIsReportedAsResolutionsEnd) {
  ResolveAll({"2.1", "conflict", "offline"});
  ASSERT_THAT(observer_.lines, SizeIs(4));
  EXPECT_EQ(observer_.lines[0], "resolving 3 runtimes (3 at once)");
  EXPECT_THAT(observer_.lines[3], HasSubstr(" in 0.0 s, 3 of 3"));
  EXPECT_THAT(observer_.lines, Contains(HasSubstr("resolved cpu as of 2026-06-30 in 0.0 s, ")));
  EXPECT_THAT(observer_.lines, Contains(HasSubstr("found no solution for cpu in 0.0 s, ")));
  EXPECT_THAT(observer_.lines, Contains(HasSubstr("could not resolve cpu in 0.0 s, ")));
}

TEST_F(RuntimePreparationTest, TheTimeThatIsLeftIsToldByWhatHasEnded) {
  for (const char* name : {"2.1", "2.2", "2.3"}) preparation_.Resolve(Request(name));
  clock_.elapsed = absl::Seconds(10);
  Drain();
  EXPECT_THAT(observer_.lines, Contains(HasSubstr(", 1 of 3, about 20 s left")));
  EXPECT_THAT(observer_.lines, Contains(HasSubstr(", 2 of 3, about 5 s left")));
}

TEST_F(RuntimePreparationTest, ThatRuntimesShareAnEnvironmentIsToldOnce) {
  ResolveAll({"2.1+a", "2.1+b", "2.2"});
  preparation_.Advance(absl::ZeroDuration());
  preparation_.Advance(absl::ZeroDuration());
  EXPECT_EQ(std::count(observer_.lines.begin(), observer_.lines.end(),
                       "3 runtimes have 2 different sets of packages: equal ones share an "
                       "environment"),
            1);
}

TEST_F(RuntimePreparationTest, WhatIsCachedIsNeitherResolvedNorReported) {
  provider_.cached = {"2.1"};
  preparation_.Resolve(Request("2.1"));
  EXPECT_EQ(std::get<RuntimeLock>(**preparation_.resolution("2.1")), LockOf("2.1"));
  CreateAll({"2.1"});
  EXPECT_EQ(*EnvironmentOf("2.1"), "/cached/python");
  EXPECT_FALSE(preparation_.busy());
  EXPECT_THAT(provider_.calls, IsEmpty());
  EXPECT_THAT(observer_.lines, IsEmpty());
}

TEST_F(RuntimePreparationTest, FinishStartsNothingFurtherAndWaitsForWhatRuns) {
  provider_.together = 8;
  for (const std::string& name : Names(20)) preparation_.Resolve(Request(name));
  preparation_.Finish();
  EXPECT_THAT(provider_.calls, SizeIs(8));
  EXPECT_FALSE(preparation_.busy());
  EXPECT_TRUE(preparation_.resolution("2.0")->ok());
  EXPECT_EQ(preparation_.resolution("2.19")->status(), absl::CancelledError("interrupted"));
  // Whoever asks again gets it.
  ResolveAll({"2.19"});
  EXPECT_TRUE(preparation_.resolution("2.19")->ok());
}

TEST_F(RuntimePreparationTest, TwoEnvironmentsAreCreatedAtOnceAndNoMore) {
  CreateAll({"2.0", "2.1"});
  provider_.together = 2;
  CreateAll(Names(10));
  EXPECT_EQ(provider_.most, 2u);
  EXPECT_THAT(provider_.calls, SizeIs(10));
  for (const std::string& name : Names(10))
    EXPECT_EQ(*EnvironmentOf(name), fs::path("/made") / name);
  EXPECT_THAT(observer_.lines, Contains("creating 8 environments (2 at once)"));
}

TEST_F(RuntimePreparationTest, AnEnvironmentIsCreatedWhileRuntimesAreResolved) {
  provider_.together = 9;
  for (const std::string& name : Names(8)) preparation_.Resolve(Request(name));
  CreateAll({"torch"});
  EXPECT_EQ(provider_.most, 9u);
}

TEST_F(RuntimePreparationTest, AnEnvironmentThatCannotBeCreatedStopsNoOther) {
  CreateAll({"unbuildable", "good"});
  EXPECT_TRUE(absl::IsAborted(EnvironmentOf("unbuildable").status()));
  EXPECT_EQ(*EnvironmentOf("good"), "/made/good");
  EXPECT_THAT(observer_.lines,
              Contains(AllOf(HasSubstr("could not create environment " +
                                       LockOf("unbuildable").Key().substr(0, 12) + " in 0.0 s, "),
                             HasSubstr(" of 2"))));
}

}  // namespace
}  // namespace bkm
