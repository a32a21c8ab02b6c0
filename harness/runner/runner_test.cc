// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "harness/base/files.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Json Ended(const char* kind) { return {{"ending", {{"kind", kind}}}}; }

Json Raised() {
  Json observation = Ended("raised");
  observation["exception"] = {{"type", "ValueError"}};
  return observation;
}

// Remembers what was started; ends cells in the order of their start with the observations that the
// test has queued.
class FakeExecutor : public CellExecutor {
 public:
  int running() const override { return static_cast<int>(in_flight_.size()); }
  void Start(const CellTask& task) override {
    started.push_back(task.request["adapter"].get<std::string>() + " " +
                      task.request["probe"]["attention"].get<std::string>());
    timeouts.push_back(task.request["limits"]["timeout_s"]);
    in_flight_.push_back(task.id);
    most_running = std::max(most_running, running());
  }
  WaitResult WaitAny(std::chrono::milliseconds) override {
    if (interrupt_after-- == 0) return Interrupted{};
    if (in_flight_.empty()) return DeadlinePassed{};
    const std::string id = in_flight_.front();
    in_flight_.pop_front();
    if (cancelled_) return CellFinished{id, Ended("cancelled")};
    Json observation = Ended("completed");
    if (!endings.empty()) observation = endings.front(), endings.pop_front();
    return CellFinished{id, observation};
  }
  void Release(const std::string& key) override { released.push_back(key); }
  void CancelAll() override { cancelled_ = true; }

  std::vector<std::string> started;
  std::vector<int> timeouts;
  std::vector<std::string> released;
  std::deque<Json> endings;
  int most_running = 0;
  int interrupt_after = -1;

 private:
  std::deque<std::string> in_flight_;
  bool cancelled_ = false;
};

PreparedCell Prepared(const char* attention, const char* lock = "lock") {
  PreparedCell cell;
  cell.record.cell.engine = "verl-torchtitan";
  cell.record.cell.engine_subject = *ParseSubjectSpec("pypi:verl==0.9.1");
  cell.record.cell.library_subject = *ParseSubjectSpec("pypi:torchtitan==0.3.0");
  cell.record.cell.probe.attention = attention;
  cell.record.id = CellId(cell.record.cell);
  cell.record.dir = CellDirectory(cell.record.cell, cell.record.id);
  cell.record.lock = lock;
  cell.worker.key = lock;
  return cell;
}

class RunnerTest : public ::testing::Test {
 protected:
  RunnerTest() : directory_(*CreateTempDirectory(::testing::TempDir(), "run")) {}

  bool Run(std::vector<PreparedCell> cells, int slots = 1) {
    run_ = RunRecord();
    Runner runner({.slots = slots}, {}, directory_, executor_, observer_);
    return *runner.Run(std::move(cells), run_);
  }

  RunDirectory directory_;
  FakeExecutor executor_;
  RunObserver observer_;
  RunRecord run_;
};

TEST_F(RunnerTest, KeepsAllSlotsBusyAndNoMore) {
  EXPECT_TRUE(Run({Prepared("flex"), Prepared("varlen"), Prepared("sdpa")}, 2));
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan flex", "verl-torchtitan varlen",
                                             "verl-torchtitan sdpa"));
  EXPECT_EQ(executor_.most_running, 2);
}

TEST_F(RunnerTest, ReleasesAWorkerWhenItsLastCellHasEnded) {
  Run({Prepared("flex", "a"), Prepared("flex", "b"), Prepared("varlen", "a")});
  EXPECT_THAT(executor_.released, ElementsAre("a", "b"));
}

TEST_F(RunnerTest, CellThatRaisedGetsOneControlForBlame) {
  executor_.endings = {Raised(), Ended("completed"), Raised()};
  Run({Prepared("flex"), Prepared("varlen")});
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan flex", "torchtitan flex",
                                             "verl-torchtitan varlen", "torchtitan varlen"));
  EXPECT_EQ(run_.cells[2].role, CellRole::kControl);
  EXPECT_EQ(run_.cells[2].cell.engine_subject, std::nullopt);
}

TEST_F(RunnerTest, TimedOutCellRunsOnceMoreAloneWithTwiceTheLimit) {
  executor_.endings = {Ended("timed-out"), Ended("completed"), Ended("timed-out")};
  Run({Prepared("flex"), Prepared("varlen")}, 2);
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan flex", "verl-torchtitan varlen",
                                             "verl-torchtitan flex"));
  EXPECT_THAT(executor_.timeouts, ElementsAre(180, 180, 360));
  EXPECT_EQ((**directory_.ReadObservation(run_.cells[0]))["timeouts"], 2);
}

TEST_F(RunnerTest, InterruptKeepsWhatWasMeasuredAndTheSameRunFinishesTheRest) {
  executor_.interrupt_after = 1;
  EXPECT_FALSE(Run({Prepared("flex"), Prepared("varlen"), Prepared("sdpa")}));
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan flex", "verl-torchtitan varlen"));

  FakeExecutor second;
  Runner runner({.slots = 1}, {}, directory_, second, observer_);
  RunRecord run;
  EXPECT_TRUE(*runner.Run({Prepared("flex"), Prepared("varlen"), Prepared("sdpa")}, run));
  EXPECT_THAT(second.started, ElementsAre("verl-torchtitan varlen", "verl-torchtitan sdpa"));
}

TEST_F(RunnerTest, CellOfAnotherRunStandsForAnEqualOneAndSaysSo) {
  const std::filesystem::path kept = *CreateTempDirectory(::testing::TempDir(), "kept");
  ASSERT_TRUE(
      WriteFile(kept / "observation.json", ToText(Json{{"schema", 1},
                                                       {"ending", {{"kind", "completed"}}},
                                                       {"measured", "2026-01-02T03:04:05Z"}}))
          .ok());
  ASSERT_TRUE(WriteFile(kept / "stdout", "it ran\n").ok());
  const PreparedCell flex = Prepared("flex"), varlen = Prepared("varlen"), sdpa = Prepared("sdpa");
  const auto stands = [&](const PreparedCell& cell) -> std::optional<KeptObservation> {
    if (cell.record.id == flex.record.id) return KeptObservation{"another cell", kept};
    if (cell.record.id == varlen.record.id) return KeptObservation{varlen.record.id, kept};
    return std::nullopt;
  };
  Runner runner({.slots = 1}, {.kept = stands}, directory_, executor_, observer_);
  ASSERT_TRUE(*runner.Run({flex, varlen, sdpa}, run_));
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan sdpa"));
  EXPECT_EQ(run_.cells[0].inherited_from, "another cell");
  EXPECT_EQ(run_.cells[0].measured, "2026-01-02T03:04:05Z");
  EXPECT_GT(run_.cells[2].measured, "2026-01-02T03:04:05Z");
  // The same cell, measured in another run.
  EXPECT_EQ(run_.cells[1].inherited_from, std::nullopt);
  EXPECT_EQ(*ReadFile(directory_.cell(run_.cells[0]) / "stdout"), "it ran\n");
  EXPECT_TRUE(std::filesystem::exists(directory_.cell(run_.cells[0]) / "request.json"));
}

TEST_F(RunnerTest, CellThatARunMeasuredCanStandForALaterOneOfIt) {
  const std::filesystem::path kept = *CreateTempDirectory(::testing::TempDir(), "kept");
  ASSERT_TRUE(WriteFile(kept / "observation.json",
                        ToText(Json{{"schema", 1}, {"ending", {{"kind", "completed"}}}}))
                  .ok());
  const PreparedCell flex = Prepared("flex"), varlen = Prepared("varlen");
  bool flex_is_kept = false;
  RunnerHooks hooks;
  hooks.observed = [&](const PreparedCell&, const Json&) {
    flex_is_kept = true;
    return absl::OkStatus();
  };
  hooks.kept = [&](const PreparedCell& cell) -> std::optional<KeptObservation> {
    if (!flex_is_kept || cell.record.id != varlen.record.id) return std::nullopt;
    return KeptObservation{flex.record.id, kept};
  };
  Runner runner({.slots = 1}, hooks, directory_, executor_, observer_);
  ASSERT_TRUE(*runner.Run({flex, varlen}, run_));
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan flex"));
  EXPECT_THAT(executor_.released, ElementsAre("lock"));
  EXPECT_EQ(run_.cells[1].inherited_from, flex.record.id);
}

TEST_F(RunnerTest, WithoutReuseNoOtherRunIsAsked) {
  const auto stands = [](const PreparedCell&) -> std::optional<KeptObservation> {
    ADD_FAILURE() << "asked";
    return std::nullopt;
  };
  Runner runner({.slots = 1, .reuse = false}, {.kept = stands}, directory_, executor_, observer_);
  ASSERT_TRUE(*runner.Run({Prepared("flex")}, run_));
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan flex"));
}

TEST_F(RunnerTest, LostCellIsMeasuredAgain) {
  executor_.endings = {Ended("lost")};
  Run({Prepared("flex")});
  executor_.started.clear();
  Run({Prepared("flex")});
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan flex"));
  executor_.started.clear();
  Run({Prepared("flex")});
  EXPECT_THAT(executor_.started, IsEmpty());
}

TEST_F(RunnerTest, CellThatStoppedBeforeItCouldRunIsRecordedNotStarted) {
  PreparedCell cell = Prepared("flex");
  cell.stopped = Ended("no-solution");
  EXPECT_TRUE(Run({cell}));
  EXPECT_THAT(executor_.started, IsEmpty());
  EXPECT_EQ((**directory_.ReadObservation(run_.cells[0]))["ending"]["kind"], "no-solution");
}

TEST_F(RunnerTest, EqualCellsRunOnceAndTheOtherInherits) {
  PreparedCell control = *ControlOf(Prepared("flex"));
  PreparedCell asked = control;
  asked.record.cell.lock.clear();
  asked.record.id = CellId(asked.record.cell);
  asked.record.dir = "cells/asked";
  Run({asked, control});
  EXPECT_THAT(executor_.started, ElementsAre("torchtitan flex"));
  EXPECT_EQ(run_.cells[1].inherited_from, asked.record.id);
}

TEST_F(RunnerTest, CellEqualToOneThatIsReusedInheritsInsteadOfWaitingForIt) {
  PreparedCell first = Prepared("flex");
  PreparedCell equal = first;
  equal.record.id += ",equal";
  equal.record.dir = "cells/equal";
  Run({first, equal});
  executor_.started.clear();
  Run({first, equal});
  EXPECT_THAT(executor_.started, IsEmpty());
  EXPECT_EQ(run_.cells[1].inherited_from, first.record.id);
}

class FeedTest : public RunnerTest {
 protected:
  // Runs what `feed` asks for; told_ gets each verdict's message.
  void RunFed(std::function<std::vector<PreparedCell>(int room)> feed, int slots,
              std::function<std::optional<Verdict>(const CellRecord&)> judge) {
    RunnerHooks hooks;
    hooks.feed = [feed](int room) -> absl::StatusOr<std::vector<PreparedCell>> {
      return feed(room);
    };
    hooks.judge = [judge](const CellRecord& cell) -> absl::StatusOr<std::optional<Verdict>> {
      return judge(cell);
    };
    hooks.judged = [this](const CellRecord& cell) {
      told_.push_back(cell.cell.probe.attention + " " + cell.verdict->message);
      return absl::OkStatus();
    };
    hooks.background = [this](bool) { return busy_-- > 0 ? 1 : 0; };
    run_ = RunRecord();
    Runner runner({.slots = slots}, std::move(hooks), directory_, executor_, observer_);
    EXPECT_TRUE(*runner.Run({}, run_));
  }

  std::vector<std::string> told_;
  int busy_ = 0;  // turns for which a golden is being computed
};

TEST_F(FeedTest, ChoosesEachCellByTheVerdictBefore) {
  RunFed(
      [&](int room) -> std::vector<PreparedCell> {
        EXPECT_EQ(room, 1);
        if (told_.empty()) return {Prepared("flex")};
        if (told_.size() == 1) return {Prepared(told_[0] == "flex 1" ? "sdpa" : "varlen")};
        return {};
      },
      1, [&](const CellRecord&) { return Verdict{.message = std::to_string(told_.size() + 1)}; });
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan flex", "verl-torchtitan sdpa"));
  EXPECT_THAT(told_, ElementsAre("flex 1", "sdpa 2"));
}

TEST_F(FeedTest, AVerdictIsToldOnceItsGoldenIsThere) {
  busy_ = 5;
  bool asked = false;
  RunFed(
      [&](int) -> std::vector<PreparedCell> {
        if (std::exchange(asked, true)) return {};
        return {Prepared("flex")};
      },
      2,
      [&](const CellRecord&) {
        return busy_ > 0 ? std::nullopt : std::optional<Verdict>(Verdict{.message = "judged"});
      });
  EXPECT_THAT(told_, ElementsAre("flex judged"));
  EXPECT_EQ(run_.cells[0].verdict->message, "judged");
}

TEST_F(FeedTest, WhatIsStoredIsToldWithoutRunning) {
  const auto judge = [](const CellRecord&) { return Verdict{.message = "stored"}; };
  const auto feed = [&](int) -> std::vector<PreparedCell> {
    const std::vector<PreparedCell> cells = {Prepared("flex"), Prepared("varlen"),
                                             Prepared("sdpa")};
    if (told_.size() == 3) return {};
    return {cells[told_.size()]};
  };
  RunFed(feed, 1, judge);
  executor_.started.clear();
  told_.clear();

  RunFed(feed, 1, judge);

  EXPECT_THAT(executor_.started, IsEmpty());
  EXPECT_THAT(told_, ElementsAre("flex stored", "varlen stored", "sdpa stored"));
}

}  // namespace
}  // namespace bkm
