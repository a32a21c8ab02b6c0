// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/search/investigation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/search/search_world.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kCount = 16;

// The lock that a trial gets: commits before `first_allowed` do not allow the last commit's
// runtime.
std::string LockOf(const Trial& trial, int first_allowed) {
  const auto own = [&](int commit) { return commit < first_allowed ? "old" : "new"; };
  if (trial.runtime_of < 0) return own(trial.commit);
  const std::string asked = own(trial.runtime_of);
  return trial.forced || trial.commit >= first_allowed ? asked : own(trial.commit);
}

// Outcomes by `is_broken(commit, lock)`.
std::function<Outcome(const Trial&)> Crossed(int first_allowed,
                                             std::function<bool(int, std::string)> is_broken) {
  return [=](const Trial& trial) {
    const std::string lock = LockOf(trial, first_allowed);
    Outcome outcome = is_broken(trial.commit, lock) ? Broken() : Ok();
    outcome.lock = lock;
    return outcome;
  };
}

InvestigationResult Investigate(const std::function<Outcome(const Trial&)>& answer,
                                InvestigationSetup setup = {.late = kCount - 1, .early = 0}) {
  const CommitGraph graph(Line(kCount));
  Investigation investigation(graph, setup);
  SearchWorld world(answer, 2);
  world.Run(investigation);
  return investigation.result();
}

TEST(InvestigationTest, InOneRuntimeTheCommitMadeIt) {
  const InvestigationResult result =
      Investigate(Crossed(0, [](int commit, const std::string&) { return commit >= 9; }));
  EXPECT_EQ(result.bisection.culprit, 9);
  EXPECT_EQ(result.made_by, MadeBy::kCommit);
  EXPECT_EQ(result.runtime_before, "");
}

TEST(InvestigationTest, WhereTheBoundaryMeetsAChangeOfRuntimeBothAreCrossed) {
  const auto made_by = [](std::function<bool(int, std::string)> is_broken) {
    const InvestigationResult result = Investigate(Crossed(9, is_broken));
    EXPECT_EQ(result.bisection.culprit, 9);
    EXPECT_EQ(result.runtime_before, "old");
    EXPECT_EQ(result.runtime_after, "new");
    return result.made_by;
  };
  EXPECT_EQ(made_by([](int commit, const std::string&) { return commit >= 9; }), MadeBy::kCommit);
  EXPECT_EQ(made_by([](int, const std::string& lock) { return lock == "new"; }), MadeBy::kRuntime);
  EXPECT_EQ(
      made_by([](int commit, const std::string& lock) { return commit >= 9 && lock == "new"; }),
      MadeBy::kBoth);
  EXPECT_EQ(
      made_by([](int commit, const std::string& lock) { return commit >= 9 || lock == "new"; }),
      MadeBy::kEither);
}

TEST(InvestigationTest, ACrossingThatCannotBeJudgedLeavesItUndecided) {
  const InvestigationResult result = Investigate([](const Trial& trial) {
    Outcome outcome = trial.forced ? Unjudgeable() : trial.commit >= 9 ? Broken() : Ok();
    outcome.lock = LockOf(trial, 9);
    return outcome;
  });
  EXPECT_EQ(result.made_by, MadeBy::kUndecided);
}

// Every commit allows the newest runtime, in which the oldest commit is broken, too.
std::function<Outcome(const Trial&)> OwnRuntimes(std::function<bool(int, std::string)> is_broken) {
  return [=](const Trial& trial) {
    const std::string lock = trial.runtime_of == 0 ? "old" : "new";
    Outcome outcome = is_broken(trial.commit, lock) ? Broken() : Ok();
    outcome.lock = lock;
    return outcome;
  };
}

TEST(InvestigationTest, EndsThatDifferOnlyByTheirRuntimesAreTheRuntimesMatter) {
  const InvestigationResult result =
      Investigate(OwnRuntimes([](int, const std::string& lock) { return lock == "new"; }));
  EXPECT_EQ(result.bisection.status, SearchStatus::kFound);
  EXPECT_EQ(result.bisection.culprit, -1);
  EXPECT_EQ(result.made_by, MadeBy::kRuntime);
  EXPECT_EQ(result.runtime_before, "old");
  EXPECT_EQ(result.runtime_after, "new");
}

TEST(InvestigationTest, ACulpritThatOnlyTheOlderRuntimeShowsIsFoundInIt) {
  const InvestigationResult result = Investigate(OwnRuntimes(
      [](int commit, const std::string& lock) { return commit >= 5 || lock == "new"; }));
  EXPECT_EQ(result.bisection.status, SearchStatus::kFound);
  EXPECT_EQ(result.bisection.culprit, 5);
}

TEST(InvestigationTest, EndsThatAreAlikeInEveryRuntimeHaveNoBoundary) {
  const InvestigationResult result =
      Investigate(OwnRuntimes([](int, const std::string&) { return true; }));
  EXPECT_EQ(result.bisection.status, SearchStatus::kNone);
  EXPECT_THAT(result.bisection.why, HasSubstr("both ends are bad"));
}

TEST(InvestigationTest, AContradictionStartsAFlakySearch) {
  const InvestigationResult result = Investigate([](const Trial& trial) {
    // Every fourth run of a broken commit passes.
    return trial.commit >= 9 && (trial.run + trial.commit) % 4 != 3 ? Broken() : Ok();
  });
  ASSERT_TRUE(result.flaky.has_value());
  EXPECT_EQ(result.bisection.status, SearchStatus::kFound);
  EXPECT_EQ(result.bisection.culprit, 9);
  EXPECT_THAT(result.bisection.parents, ElementsAre(8));
  // Surer by the rates of the ends, but the commits just after it were not measured.
  EXPECT_GT(result.flaky->confidence, 0.9);
  EXPECT_LT(result.flaky->confidence, 0.9999);
  EXPECT_EQ(result.confidence, result.flaky->confidence);
}

TEST(InvestigationTest, AskedForAFlakySearchItBisectsNot) {
  const InvestigationResult result =
      Investigate([](const Trial& trial) { return trial.commit >= 9 ? Broken() : Ok(); },
                  {.late = kCount - 1, .early = 0, .flaky = true});
  ASSERT_TRUE(result.flaky.has_value());
  EXPECT_EQ(result.bisection.culprit, 9);
  EXPECT_EQ(result.bisection.status, SearchStatus::kFound);
}

TEST(InvestigationTest, GoesOnFromWhatWasMeasuredBefore) {
  const CommitGraph graph(Line(kCount));
  const auto answer = Crossed(9, [](int, const std::string& lock) { return lock == "new"; });
  SearchWorld world(answer, 2);
  Investigation first(graph, {.late = kCount - 1, .early = 0});
  world.Run(first);
  Investigation second(graph, {.late = kCount - 1, .early = 0});
  world.Repeat(second);
  EXPECT_TRUE(second.done());
  EXPECT_EQ(second.result().made_by, MadeBy::kRuntime);
}

TEST(InvestigationTest, CulpritIsNamedWithAConfidenceThatIsNeverCertainty) {
  const InvestigationResult result =
      Investigate([](const Trial& trial) { return trial.commit >= 9 ? Broken() : Ok(); });
  EXPECT_EQ(result.bisection.culprit, 9);
  ASSERT_TRUE(result.confidence.has_value());
  EXPECT_GT(*result.confidence, 0.9);
  EXPECT_LT(*result.confidence, 1);
  EXPECT_FALSE(result.flaky.has_value());
}

}  // namespace
}  // namespace bkm
