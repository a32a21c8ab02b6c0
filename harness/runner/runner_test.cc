// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <map>
#include <utility>

#include "harness/base/file_steps.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/runner/fake_clock.h"
#include "harness/runner/repeats.h"

namespace bkm {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

Json Ended(const char* kind) { return {{"ending", {{"kind", kind}}}}; }

// An observation that another cell may take.
Json Whole() {
  Json observation = Ended("completed");
  observation["schema"] = 1;
  observation["stages"] = Json::array();
  return observation;
}

Json Raised() {
  Json observation = Ended("raised");
  observation["exception"] = {{"type", "ValueError"}};
  return observation;
}

// Records the cells that are started. Ends them in the order of their start, with the observations
// that the test has queued.
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
    if (on_wait) on_wait();
    if (interrupt_after-- == 0) return Interrupted{};
    if (in_flight_.empty()) return DeadlinePassed{};
    if (is_slow && (waited_ = !waited_)) return DeadlinePassed{};
    const std::string id = in_flight_.front();
    in_flight_.pop_front();
    if (cancelled_) return CellFinished{id, CellFacts::OfReport(Ended("cancelled"))};
    Json observation = Ended("completed");
    if (!endings.empty()) observation = endings.front(), endings.pop_front();
    return CellFinished{id, CellFacts::OfReport(observation), observed};
  }
  void Release(const std::string& key) override { released.push_back(key); }
  void CancelAll() override { cancelled_ = true; }

  std::function<void()> on_wait;
  std::vector<std::string> started;
  std::vector<int> timeouts;
  std::vector<std::string> released;
  std::deque<Json> endings;
  Json observed;
  int most_running = 0;
  int interrupt_after = -1;
  bool is_slow = false;  // each cell ends at the second wait

 private:
  bool waited_ = false;
  std::deque<std::string> in_flight_;
  bool cancelled_ = false;
};

std::string NameOf(const CellRecord& cell) {
  return cell.cell.engine + " " + cell.cell.probe.attention;
}

// Gives every cell the verdict that the test chose, and records all calls.
class FakeJudge : public CellJudge {
 public:
  absl::Status Observe(const PreparedCell& cell, const Observation& seen) override {
    calls.push_back("observe " + NameOf(cell.record) + ", " + std::string(Name(seen.ending.kind)));
    return absl::OkStatus();
  }
  absl::StatusOr<std::optional<Verdict>> Judge(const CellRecord& cell) override {
    calls.push_back("judge " + NameOf(cell));
    if (busy > 0) return std::nullopt;
    return verdict;
  }
  int Advance(int slots) override {
    const bool may_start = slots > 0;
    started |= may_start;
    most_slots = std::max(most_slots, slots);
    if (wanted > 0 && may_start && making_ == 0) --wanted, making_ = 3;
    if (making_ > 0) return --making_ > 0 ? 1 : 0;
    return busy > 0 && busy-- > 1 ? 1 : 0;
  }

  std::vector<std::string> calls;
  Verdict verdict;
  int busy = 0;    // turns for which a golden is being computed
  int wanted = 0;  // goldens that are made one after the other, each in some turns
  bool started = false;
  int most_slots = 0;  // that it was given

 private:
  int making_ = 0;
};

// Holds the observations that the test put there, and records all calls.
class FakeStoredObservations : public StoredObservations {
 public:
  std::optional<KeptObservation> Find(const PreparedCell& cell) override {
    calls.push_back("find " + NameOf(cell.record));
    const auto found = stored.find(cell.record.id);
    return found == stored.end() ? std::nullopt : std::optional<KeptObservation>(found->second);
  }
  void Keep(const PreparedCell& cell, const CellFacts&, const Json& observed,
            const std::filesystem::path& folder) override {
    calls.push_back("keep " + NameOf(cell.record) + ", " + folder.filename().string());
    kept_observed.push_back(observed);
    if (after_keep) stored[after_keep->first] = after_keep->second;
  }
  void Discard(const KeptObservation& kept) override {
    calls.push_back("discard " + kept.cell);
    std::erase_if(stored, [&](const auto& entry) { return entry.second.folder == kept.folder; });
  }

  std::vector<std::string> calls;
  std::vector<Json> kept_observed;
  std::map<std::string, KeptObservation> stored;                      // by cell id
  std::optional<std::pair<std::string, KeptObservation>> after_keep;  // stored once a cell is kept
};

// Returns the cells that the test queued one by one. Records the room it was offered and the
// verdicts it was told.
class FakeFeed : public CellFeed {
 public:
  absl::StatusOr<std::vector<PreparedCell>> Next(int room) override {
    rooms.push_back(room);
    if (cells.empty()) return std::vector<PreparedCell>();
    const PreparedCell next = cells.front();
    cells.pop_front();
    return std::vector<PreparedCell>{next};
  }
  absl::Status Judged(const CellRecord& cell) override {
    judged.push_back(NameOf(cell) + ": " + cell.verdict->message);
    if (on_judged) on_judged(*this);
    return absl::OkStatus();
  }

  std::deque<PreparedCell> cells;
  std::vector<int> rooms;
  std::vector<std::string> judged;
  std::function<void(FakeFeed&)> on_judged;
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

  bool Run(std::vector<PreparedCell> cells, RunnerOptions options = {.slots = 1}) {
    ReadyCells supply(std::move(cells));
    run_ = RunRecord();
    Runner runner(options, {directory_, executor_, judge_, stored_, feed_, observer_, clock_});
    const bool finished = *runner.Run(supply, run_);
    reused_ = runner.reused();
    inherited_ = runner.inherited().ToJson();
    return finished;
  }

  // A folder with an observation of another run.
  std::filesystem::path StoredFolder(Json observation = Ended("completed")) {
    const std::filesystem::path folder = *CreateTempDirectory(::testing::TempDir(), "stored");
    observation["schema"] = 1;
    EXPECT_TRUE(WriteFile(folder / "observation.json", ToText(observation)).ok());
    EXPECT_TRUE(WriteFile(folder / "stdout", "it ran\n").ok());
    return folder;
  }

  RunDirectory directory_;
  FakeExecutor executor_;
  FakeJudge judge_;
  FakeStoredObservations stored_;
  FakeFeed feed_;
  RunObserver observer_;
  FakeClock clock_;
  RunRecord run_;
  int reused_ = 0;
  Json inherited_;
};

TEST_F(RunnerTest, KeepsAllSlotsBusyAndNoMore) {
  EXPECT_TRUE(Run({Prepared("flex"), Prepared("varlen"), Prepared("sdpa")}, {.slots = 2}));
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan flex", "verl-torchtitan varlen",
                                             "verl-torchtitan sdpa"));
  EXPECT_EQ(executor_.most_running, 2);
}

TEST_F(RunnerTest, CellsOnADeviceShareItAsFarAsItsMemoryGoes) {
  std::vector<PreparedCell> cells = {Prepared("flex"), Prepared("varlen"), Prepared("sdpa")};
  for (PreparedCell& cell : cells) cell.device_cells = 2;
  EXPECT_TRUE(Run(cells, {.slots = 3, .reuse = false}));
  EXPECT_EQ(executor_.most_running, 2);
  cells[1].device_cells = 0;  // on the CPU
  EXPECT_TRUE(Run(cells, {.slots = 3, .reuse = false}));
  EXPECT_EQ(executor_.most_running, 3);
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
  Run({Prepared("flex"), Prepared("varlen")}, {.slots = 2});
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan flex", "verl-torchtitan varlen",
                                             "verl-torchtitan flex"));
  EXPECT_THAT(executor_.timeouts, ElementsAre(180, 180, 360));
  EXPECT_EQ((**directory_.ReadObservation(run_.cells[0])).seen().timeouts, 2);
}

// Cells that become ready in rounds, one round at each call. An empty round: nothing is ready yet.
class FakeSupply : public CellSupply {
 public:
  explicit FakeSupply(std::vector<PreparedCell> cells) : cells_(std::move(cells)) {}

  std::vector<CellRecord> records() const override {
    std::vector<CellRecord> records;
    for (const PreparedCell& cell : cells_) {
      records.push_back(cell.record);
      records.back().lock.clear();  // only a ready cell has one
    }
    return records;
  }
  absl::StatusOr<std::vector<Ready>> Take() override {
    RETURN_IF_ERROR(failure);
    std::vector<Ready> ready;
    for (const size_t index : rounds.front()) ready.push_back({index, cells_[index]});
    rounds.pop_front();
    if (fail_after && rounds.empty()) failure = absl::UnavailableError("no network");
    return ready;
  }
  bool done() const override { return rounds.empty() && !fail_after; }

  std::deque<std::vector<size_t>> rounds;
  bool fail_after = false;
  absl::Status failure;

 private:
  const std::vector<PreparedCell> cells_;
};

TEST_F(RunnerTest, CellRunsAsSoonAsItIsReadyAndKeepsItsPlace) {
  FakeSupply supply({Prepared("flex", "a"), Prepared("varlen", "b"), Prepared("sdpa", "c")});
  supply.rounds = {{}, {2}, {}, {}, {1}, {0}};
  Runner runner({.slots = 1}, {directory_, executor_, judge_, stored_, feed_, observer_, clock_});
  ASSERT_TRUE(*runner.Run(supply, run_));
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan sdpa", "verl-torchtitan varlen",
                                             "verl-torchtitan flex"));
  ASSERT_EQ(run_.cells.size(), 3u);
  EXPECT_EQ(run_.cells[0].cell.probe.attention, "flex");
  EXPECT_EQ(run_.cells[0].lock, "a");
  EXPECT_EQ(run_.cells[2].lock, "c");
  for (const CellRecord& cell : run_.cells) EXPECT_TRUE(cell.verdict.has_value()) << cell.id;
}

TEST_F(RunnerTest, RetryWaitsUntilNoCellIsBeingPrepared) {
  FakeSupply supply({Prepared("flex", "a"), Prepared("varlen", "b")});
  supply.rounds = {{0}, {}, {}, {}, {1}};
  executor_.endings = {Ended("timed-out")};
  Runner runner({.slots = 1}, {directory_, executor_, judge_, stored_, feed_, observer_, clock_});
  ASSERT_TRUE(*runner.Run(supply, run_));
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan flex", "verl-torchtitan varlen",
                                             "verl-torchtitan flex"));
}

TEST_F(RunnerTest, CellsThatRunEndBeforeAnErrorOfTheSupplyEndsTheRun) {
  FakeSupply supply({Prepared("flex", "a"), Prepared("varlen", "b")});
  supply.rounds = {{0}};
  supply.fail_after = true;
  Runner runner({.slots = 1}, {directory_, executor_, judge_, stored_, feed_, observer_, clock_});
  EXPECT_EQ(runner.Run(supply, run_).status(), absl::UnavailableError("no network"));
  const RunRecord written = *directory_.ReadRun();
  ASSERT_EQ(written.cells.size(), 2u);
  EXPECT_FALSE(written.finished);
  EXPECT_FALSE(written.cells[1].verdict.has_value());
  // The same run takes what is there.
  executor_ = FakeExecutor();
  EXPECT_TRUE(Run({Prepared("flex", "a"), Prepared("varlen", "b")}));
  EXPECT_LE(executor_.started.size(), 2u);
}

TEST_F(RunnerTest, FurtherCellsOfASupplyComeLast) {
  ReadyCells cells({Prepared("flex"), Prepared("varlen")});
  RepeatedCells repeated(cells, 2);
  Runner runner({.slots = 1}, {directory_, executor_, judge_, stored_, feed_, observer_, clock_});
  ASSERT_TRUE(*runner.Run(repeated, run_));
  ASSERT_EQ(run_.cells.size(), 4u);
  EXPECT_EQ(run_.cells[2].repeat_of, run_.cells[0].id);
  EXPECT_EQ(run_.cells[3].repeat_of, run_.cells[1].id);
  EXPECT_EQ(repeated.cells().size(), 4u);
}

TEST_F(RunnerTest, LateVerdictIsReported) {
  class Judged : public RunObserver {
   public:
    void OnFinished(const CellRecord& cell, bool) override {
      lines.push_back(cell.verdict ? "finished with a verdict" : "finished");
    }
    void OnJudged(const CellRecord& cell) override { lines.push_back(cell.verdict->message); }
    std::vector<std::string> lines;
  };
  Judged observer;
  judge_.busy = 4;
  judge_.verdict.message = "late";
  ReadyCells cells({Prepared("flex")});
  Runner runner({.slots = 2}, {directory_, executor_, judge_, stored_, feed_, observer, clock_});
  ASSERT_TRUE(*runner.Run(cells, run_));
  EXPECT_THAT(observer.lines, ElementsAre("finished", "late"));
}

TEST_F(RunnerTest, InterruptKeepsWhatWasMeasuredAndTheSameRunFinishesTheRest) {
  executor_.interrupt_after = 1;
  EXPECT_FALSE(Run({Prepared("flex"), Prepared("varlen"), Prepared("sdpa")}));
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan flex", "verl-torchtitan varlen"));

  executor_ = FakeExecutor();
  EXPECT_TRUE(Run({Prepared("flex"), Prepared("varlen"), Prepared("sdpa")}));
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan varlen", "verl-torchtitan sdpa"));
}

TEST_F(RunnerTest, AfterItsTimeNoCellStartsAndThoseThatRanAreJudged) {
  executor_.on_wait = [&] { clock_.elapsed += absl::Minutes(1); };
  judge_.wanted = 2;
  RunnerOptions options{.slots = 2};
  options.start_until = absl::Minutes(2);
  const std::vector<PreparedCell> cells = {Prepared("flex"), Prepared("varlen"), Prepared("sdpa"),
                                           Prepared("eager")};
  EXPECT_FALSE(Run(cells, options));
  const size_t started = executor_.started.size();
  EXPECT_GT(started, 0u);
  EXPECT_LT(started, cells.size());
  for (size_t i = 0; i < cells.size(); ++i)
    EXPECT_EQ(run_.cells[i].verdict.has_value(), i < started) << i;

  executor_ = FakeExecutor();
  EXPECT_TRUE(Run(cells));
  EXPECT_EQ(executor_.started.size(), cells.size() - started);
}

// Writing fails with `error` in paths that contain `where`.
class FailingSteps : public FileSteps {
 public:
  FailingSteps(std::string where, int error) : where_(std::move(where)), error_(error) {}
  int Write(int file, const std::filesystem::path& path, absl::string_view content) override {
    return Fails(path) ? error_ : FileSteps::Write(file, path, content);
  }
  int Sync(int file, const std::filesystem::path& path) override {
    return Fails(path) ? error_ : FileSteps::Sync(file, path);
  }

 private:
  bool Fails(const std::filesystem::path& path) const {
    return path.string().find(where_) != std::string::npos;
  }
  const std::string where_;
  const int error_;
};

TEST_F(RunnerTest, AFolderThatCannotBeWrittenCostsOnlyItsCell) {
  const PreparedCell flex = Prepared("flex"), varlen = Prepared("varlen");
  // The folder fails before the cell runs, and after it.
  for (const char* file : {"", "/observation.json", "/manifest.sha256"}) {
    executor_ = FakeExecutor();
    {
      FailingSteps steps(flex.record.dir + file, EIO);
      const ReplacedFileSteps replaced(steps);
      ASSERT_TRUE(Run({flex, varlen}, {.slots = 1, .reuse = false})) << file;
    }
    EXPECT_EQ(run_.cells[0].verdict->kind, VerdictKind::kSpurious) << file;
    EXPECT_EQ(run_.cells[0].verdict->reason, "folder-unwritable") << file;
    EXPECT_TRUE((*directory_.ReadObservation(run_.cells[1])).has_value()) << file;

    executor_ = FakeExecutor();
    ASSERT_TRUE(Run({flex, varlen}));
    EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan flex")) << file;
  }
}

TEST_F(RunnerTest, AFullDiskMakesACellSpuriousAndKeepsTheOthers) {
  const PreparedCell flex = Prepared("flex"), varlen = Prepared("varlen");
  FailingSteps steps(flex.record.dir, ENOSPC);
  const ReplacedFileSteps replaced(steps);
  ASSERT_TRUE(Run({flex, varlen}));
  EXPECT_EQ(run_.cells[0].verdict->reason, "disk-full");
  EXPECT_TRUE((*directory_.ReadObservation(run_.cells[1])).has_value());
}

// Records warnings.
class WarnedObserver : public RunObserver {
 public:
  void OnWarning(const std::string& what) override { warnings.push_back(what); }
  std::vector<std::string> warnings;
};

TEST_F(RunnerTest, DamagedEvidenceIsSetAsideReportedAndMeasuredAgain) {
  const PreparedCell flex = Prepared("flex"), varlen = Prepared("varlen");
  ASSERT_TRUE(Run({flex, varlen}));
  const std::filesystem::path file = directory_.cell(flex.record) / "observation.json";
  std::string text = *ReadFile(file);
  text[text.size() / 2] ^= 1;
  ASSERT_TRUE(WriteFile(file, text).ok());
  executor_ = FakeExecutor();
  WarnedObserver observer;
  run_ = RunRecord();
  Runner runner({.slots = 1}, {directory_, executor_, judge_, stored_, feed_, observer, clock_});

  ReadyCells cells({flex, varlen});
  ASSERT_TRUE(*runner.Run(cells, run_));

  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan flex"));
  ASSERT_EQ(observer.warnings.size(), 1u);
  EXPECT_THAT(observer.warnings[0],
              ::testing::AllOf(StartsWith(file.string() + " is damaged"),
                               ::testing::HasSubstr("measuring the cell again; its old files")));
}

TEST_F(RunnerTest, CellOfAnotherRunStandsForAnEqualOneAndSaysSo) {
  Json observation = Ended("completed");
  observation["measured"] = "2026-01-02T03:04:05Z";
  const std::filesystem::path folder = StoredFolder(observation);
  const PreparedCell flex = Prepared("flex"), varlen = Prepared("varlen"), sdpa = Prepared("sdpa");
  stored_.stored[flex.record.id] = {"another cell", folder};
  stored_.stored[varlen.record.id] = {varlen.record.id, folder};
  clock_.now = absl::FromUnixSeconds(1'800'000'000);
  ASSERT_TRUE(Run({flex, varlen, sdpa}));
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan sdpa"));
  EXPECT_EQ(run_.cells[0].inherited_from, "another cell");
  EXPECT_EQ(run_.cells[0].measured, "2026-01-02T03:04:05Z");
  EXPECT_EQ(run_.cells[2].measured, "2027-01-15T08:00:00+00:00");
  // The same cell was measured in another run.
  EXPECT_EQ(run_.cells[1].inherited_from, std::nullopt);
  EXPECT_EQ(*ReadFile(directory_.cell(run_.cells[0]) / "stdout"), "it ran\n");
  EXPECT_TRUE(std::filesystem::exists(directory_.cell(run_.cells[0]) / "request.json"));
}

TEST_F(RunnerTest, CellThatARunMeasuredCanStandForALaterOneOfIt) {
  const PreparedCell flex = Prepared("flex"), varlen = Prepared("varlen");
  stored_.after_keep = {varlen.record.id, {flex.record.id, StoredFolder()}};
  ASSERT_TRUE(Run({flex, varlen}));
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan flex"));
  EXPECT_THAT(executor_.released, ElementsAre("lock"));
  EXPECT_EQ(run_.cells[1].inherited_from, flex.record.id);
}

TEST_F(RunnerTest, StoredObservationsAreAskedBeforeACellStartsAndGetWhatItShows) {
  const PreparedCell flex = Prepared("flex");
  ASSERT_TRUE(Run({flex}));
  const std::string folder = std::filesystem::path(flex.record.dir).filename();
  EXPECT_THAT(stored_.calls, ElementsAre("find verl-torchtitan flex", "find verl-torchtitan flex",
                                         "keep verl-torchtitan flex, " + folder));
}

TEST_F(RunnerTest, WhatTheWorkerObservedIsKeptBesideTheObservation) {
  const Json observed = {{"observer", "fuse"}};
  executor_.endings = {Whole()};
  executor_.observed = observed;
  Run({Prepared("flex")});
  EXPECT_EQ(*ReadJsonFile(directory_.cell(run_.cells[0]) / kObservedFile), observed);
  // Resuming finds it again.
  executor_ = FakeExecutor();
  Run({Prepared("flex")});
  EXPECT_THAT(executor_.started, IsEmpty());
  EXPECT_THAT(stored_.kept_observed, ElementsAre(observed, observed));
}

TEST_F(RunnerTest, CellOfTheSampleIsMeasuredAndAgrees) {
  const PreparedCell flex = Prepared("flex");
  stored_.stored[flex.record.id] = {"another cell", StoredFolder(Whole())};
  executor_.endings = {Whole()};
  ASSERT_TRUE(Run({flex}, {.slots = 1, .verify_inherited = 1}));
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan flex"));
  EXPECT_EQ(run_.cells[0].inherited_from, std::nullopt);
  EXPECT_EQ(inherited_["checked"], 1);
  EXPECT_EQ(inherited_["differences"], Json::array());
}

TEST_F(RunnerTest, DifferenceDiscardsTheSourceAndMeasuresAllThatTookIt) {
  const PreparedCell flex = Prepared("flex"), varlen = Prepared("varlen"), sdpa = Prepared("sdpa");
  Json observation = Whole();
  observation["backend"] = Json{{"configured", "another"}};
  executor_.endings = {Whole(), Whole(), Whole()};
  const KeptObservation kept = {"another cell", StoredFolder(observation)};
  stored_.stored = {{flex.record.id, kept}, {varlen.record.id, kept}, {sdpa.record.id, kept}};
  uint64_t seed = 0;
  const auto chooses_flex_only = [&] {
    const InheritedCells cells(2, seed);
    return cells.IsSampled(flex.record.id) && !cells.IsSampled(varlen.record.id) &&
           !cells.IsSampled(sdpa.record.id);
  };
  while (!chooses_flex_only()) ++seed;
  ASSERT_TRUE(Run({varlen, flex, sdpa}, {.slots = 1, .verify_inherited = 2, .verify_seed = seed}));
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan flex", "verl-torchtitan varlen",
                                             "verl-torchtitan sdpa"));
  EXPECT_THAT(stored_.calls, Contains("discard another cell"));
  for (const CellRecord& cell : run_.cells) {
    EXPECT_EQ(cell.inherited_from, std::nullopt) << cell.id;
    EXPECT_TRUE(cell.verdict) << cell.id;
  }
  EXPECT_EQ(reused_, 0);
  EXPECT_EQ(inherited_["differences"],
            (Json{{{"cell", flex.record.id}, {"from", "another cell"}, {"what", "backend"}}}));
}

TEST_F(RunnerTest, ResumedRunKnowsWhoseObservationACellTook) {
  const PreparedCell flex = Prepared("flex");
  stored_.stored[flex.record.id] = {"another cell", StoredFolder(Whole())};
  Run({flex});
  Run({flex});
  EXPECT_EQ(run_.cells[0].inherited_from, "another cell");
}

TEST_F(RunnerTest, WithoutReuseNoOtherRunIsAsked) {
  const PreparedCell flex = Prepared("flex");
  stored_.stored[flex.record.id] = {"another cell", StoredFolder()};
  ASSERT_TRUE(Run({flex}, {.slots = 1, .reuse = false}));
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan flex"));
  EXPECT_THAT(stored_.calls, ElementsAre(StartsWith("keep verl-torchtitan flex")));
}

TEST_F(RunnerTest, CountsTheCellsThatTookAnObservationThatWasThere) {
  const PreparedCell flex = Prepared("flex"), varlen = Prepared("varlen"), sdpa = Prepared("sdpa");
  PreparedCell equal = flex;
  equal.record.id += ",equal";
  equal.record.dir = "cells/equal";
  stored_.stored[varlen.record.id] = {"another cell", StoredFolder()};
  Run({flex, varlen});
  EXPECT_EQ(reused_, 1);  // varlen, from another run
  Run({flex, equal, varlen, sdpa});
  EXPECT_EQ(reused_, 3);  // flex and varlen from the run directory, and flex's equal
}

TEST_F(RunnerTest, ACellIsObservedThenJudgedThenToldToTheFeed) {
  judge_.verdict.message = "judged";
  Run({Prepared("flex"), Prepared("varlen")});
  EXPECT_THAT(
      judge_.calls,
      ElementsAre("observe verl-torchtitan flex, completed", "judge verl-torchtitan flex",
                  "observe verl-torchtitan varlen, completed", "judge verl-torchtitan varlen"));
  EXPECT_THAT(feed_.judged,
              ElementsAre("verl-torchtitan flex: judged", "verl-torchtitan varlen: judged"));
}

TEST_F(RunnerTest, ARunThatIsJudgedElsewhereHasObservationsAndNoVerdicts) {
  judge_.busy = 1'000'000;
  executor_.endings = {Raised(), Ended("completed"), Ended("completed")};
  EXPECT_TRUE(Run({Prepared("flex"), Prepared("varlen")}, {.slots = 1, .judges = false}));
  ASSERT_EQ(run_.cells.size(), 3u);  // blame needs the control there, too
  for (const CellRecord& cell : run_.cells) {
    EXPECT_FALSE(cell.verdict) << cell.id;
    EXPECT_TRUE((*directory_.ReadObservation(cell)).has_value()) << cell.id;
  }
}

TEST_F(RunnerTest, RunLastsUntilItsGoldensAreThere) {
  judge_.busy = 5;
  EXPECT_TRUE(Run({Prepared("flex")}, {.slots = 2}));
  EXPECT_EQ(judge_.busy, 0);
  EXPECT_TRUE(judge_.started);
  EXPECT_TRUE(run_.cells[0].verdict.has_value());
}

TEST_F(RunnerTest, GoldensGetOneSlotWhileCellsWaitAndAllOnceNoneIsLeft) {
  executor_.interrupt_after = 1;
  EXPECT_FALSE(Run({Prepared("flex"), Prepared("varlen"), Prepared("sdpa")}, {.slots = 2}));
  EXPECT_EQ(judge_.most_slots, 1);
  executor_ = FakeExecutor();
  judge_.busy = 5;
  EXPECT_TRUE(Run({Prepared("flex")}, {.slots = 3}));
  EXPECT_EQ(judge_.most_slots, 3);
}

TEST_F(RunnerTest, GoldensGetOneSlotBesideARetry) {
  std::vector<int> given;  // before each of the executor's waits: two of the cell, two of its retry
  executor_.is_slow = true;
  executor_.endings = {Ended("timed-out")};
  executor_.on_wait = [&] { given.push_back(std::exchange(judge_.most_slots, 0)); };
  EXPECT_TRUE(Run({Prepared("flex")}, {.slots = 3}));
  EXPECT_THAT(given, ElementsAre(1, 2, 1, 1));
}

TEST_F(RunnerTest, GoldensDoNotKeepACellOfSeveralRanksWaiting) {
  judge_.wanted = 5;
  PreparedCell ranks = Prepared("flex");
  ranks.record.cell.probe.layout.dp_shard = 2;
  EXPECT_TRUE(Run({ranks}, {.slots = 2}));
  EXPECT_TRUE(run_.cells[0].verdict.has_value());
  EXPECT_GT(judge_.wanted, 0);
}

TEST_F(RunnerTest, AGoldenInTheMakingHoldsASlot) {
  judge_.busy = 1000;
  executor_.interrupt_after = 3;
  EXPECT_FALSE(Run({Prepared("flex")}));
  EXPECT_THAT(executor_.started, IsEmpty());
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

// A field of a wrong type is that cell's verdict: the run goes on, and the next run does not
// measure the cell again.
TEST_F(RunnerTest, CellThatReportsNonsenseEndsNeitherTheRunNorTheNextOne) {
  std::vector<Json> nonsense = {nullptr, 5, "x", Json::array()};
  for (const char* field : {"ending", "usage", "timeouts", "measured", "steps", "stages", "adapter",
                            "exception", "mask", "backend", "load", "closure"}) {
    for (const Json& value : {Json(nullptr), Json("x"), Json(-1.5), Json(Json::array({1, "y"})),
                              Json{{"kind", 3}, {"precision_ran", "../../x"}, {"wall_s", {}}}}) {
      Json observation = Ended("completed");
      observation[field] = value;
      nonsense.push_back(observation);
    }
  }
  for (const Json& observation : nonsense) {
    directory_ = RunDirectory(*CreateTempDirectory(::testing::TempDir(), "run"));
    executor_.started.clear();
    executor_.endings = {observation, Ended("completed")};

    EXPECT_TRUE(Run({Prepared("flex"), Prepared("varlen")}, {.slots = 1, .controls = false}))
        << observation;
    EXPECT_EQ(executor_.started.size(), 2u) << observation;
    const auto stored = directory_.ReadObservation(run_.cells[0]);
    ASSERT_TRUE(stored.ok() && *stored && (*stored)->json().is_object()) << observation;
    if ((*stored)->ending().kind == EndingKind::kMalformed) {
      EXPECT_TRUE(Run({Prepared("flex"), Prepared("varlen")},
                      {.slots = 1, .controls = false, .reuse = true}));
      EXPECT_EQ(executor_.started.size(), 2u) << observation;
    }
    RemoveTree(directory_.root()).IgnoreError();
  }
}

TEST_F(RunnerTest, WhatTheMachineLacksIsSeenByTheRunnerNotByTheCell) {
  Json raised = Raised();
  raised["machine"] = {{"disk_full", true}, {"memory_short", true}};
  executor_.endings = {raised};
  RunnerOptions options{.slots = 1, .controls = false};
  options.task.limits.memory_mib = 1;

  Run({Prepared("flex")}, options);

  const Json machine = (**directory_.ReadObservation(run_.cells[0])).json()["machine"];
  EXPECT_EQ(machine, Json({{"disk_full", false}, {"memory_short", false}}));
}

TEST_F(RunnerTest, CellThatStoppedBeforeItCouldRunIsRecordedNotStarted) {
  PreparedCell cell = Prepared("flex");
  cell.stopped = CellFacts::NeverRan(EndingKind::kNoSolution, "none");
  EXPECT_TRUE(Run({cell}));
  EXPECT_THAT(executor_.started, IsEmpty());
  EXPECT_EQ((**directory_.ReadObservation(run_.cells[0])).ending().kind, EndingKind::kNoSolution);
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

TEST_F(RunnerTest, FeedChoosesEachCellByTheVerdictBefore) {
  feed_.cells = {Prepared("flex")};
  judge_.verdict.message = "red";
  feed_.on_judged = [&](FakeFeed& feed) {
    if (feed.judged.size() == 1) feed.cells = {Prepared("sdpa")};
  };
  EXPECT_TRUE(Run({}));
  EXPECT_THAT(executor_.started, ElementsAre("verl-torchtitan flex", "verl-torchtitan sdpa"));
  EXPECT_THAT(feed_.judged, ElementsAre("verl-torchtitan flex: red", "verl-torchtitan sdpa: red"));
}

TEST_F(RunnerTest, FeedIsOfferedTheFreeSlots) {
  feed_.cells = {Prepared("flex"), Prepared("varlen"), Prepared("sdpa")};
  EXPECT_TRUE(Run({}, {.slots = 3}));
  EXPECT_THAT(feed_.rooms, ElementsAre(3, 2, 1, 1, 2, 3));
  EXPECT_EQ(executor_.most_running, 3);
}

TEST_F(RunnerTest, FeedIsToldAVerdictOnceItsGoldenIsThere) {
  judge_.busy = 5;
  judge_.verdict.message = "judged";
  feed_.cells = {Prepared("flex")};
  EXPECT_TRUE(Run({}, {.slots = 2}));
  EXPECT_THAT(feed_.judged, ElementsAre("verl-torchtitan flex: judged"));
  EXPECT_EQ(run_.cells[0].verdict->message, "judged");
}

TEST_F(RunnerTest, FeedIsToldWhatIsStoredWithoutRunning) {
  judge_.verdict.message = "stored";
  const std::deque<PreparedCell> cells = {Prepared("flex"), Prepared("varlen"), Prepared("sdpa")};
  feed_.cells = cells;
  Run({});
  executor_ = FakeExecutor();
  feed_ = FakeFeed();
  feed_.cells = cells;
  Run({});
  EXPECT_THAT(executor_.started, IsEmpty());
  EXPECT_THAT(feed_.judged,
              ElementsAre("verl-torchtitan flex: stored", "verl-torchtitan varlen: stored",
                          "verl-torchtitan sdpa: stored"));
}

}  // namespace
}  // namespace bkm
