// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/preparing_cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/json_facts.h"
#include "harness/runner/fake_clock.h"
#include "harness/runner/fake_runtime_provider.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr auto kNever = [] { return false; };

// The torch of a planned cell chooses what its runtime comes to: FakeRuntimeProvider.
PlannedCell Planned(const std::string& torch) {
  PlannedCell planned;
  planned.cell.torch = torch;
  planned.id = "cell of " + torch;
  return planned;
}

std::vector<PlannedCell> AllOf(const std::vector<std::string>& torches) {
  std::vector<PlannedCell> plan;
  for (const std::string& torch : torches) plan.push_back(Planned(torch));
  return plan;
}

class FakeSteps : public CellSteps {
 public:
  absl::StatusOr<PreparedCell> PrepareSubjects(const PlannedCell& planned) override {
    PreparedCell cell;
    cell.record.cell = planned.cell;
    cell.record.id = planned.id;
    if (planned.cell.torch == "faulty")
      StopCell(cell, Stage::kResolve, EndingKind::kTreeNotAllowed, "no files");
    return cell;
  }
  absl::StatusOr<RuntimeRequest> RequestOf(const PreparedCell& cell) override {
    return RuntimeRequest{.policy = {.name = "cpu"}, .torch = cell.record.cell.torch};
  }
  void UseLock(std::shared_ptr<const RuntimeLock> lock, PreparedCell& cell) override {
    cell.record.lock = lock->Key();
    cell.lock = std::move(lock);
  }
  absl::Status Finish(const fs::path& python, PreparedCell& cell) override {
    if (cell.record.cell.torch == "probeless") return absl::ResourceExhaustedError("disk full");
    cell.worker.python = python;
    return absl::OkStatus();
  }
};

class PreparingCellsTest : public ::testing::Test {
 protected:
  std::unique_ptr<PreparingCells> Begin(const std::vector<std::string>& torches) {
    return *PreparingCells::Begin(steps_, runtimes_, AllOf(torches), kNever);
  }
  // The indices of all cells in the order in which they became ready.
  static std::vector<size_t> TakeAll(PreparingCells& cells) {
    std::vector<size_t> order;
    while (!cells.done()) {
      const std::vector<CellSupply::Ready> ready = *cells.TakeWithin(absl::Seconds(1));
      for (const CellSupply::Ready& each : ready) order.push_back(*each.index);
    }
    return order;
  }
  static absl::Status Failure(PreparingCells& cells) {
    for (;;) {
      const auto taken = cells.TakeWithin(absl::Seconds(1));
      if (!taken.ok()) return taken.status();
      if (cells.done()) return absl::OkStatus();
    }
  }
  static std::string EndingOf(const PreparedCell& cell) {
    return cell.stopped ? std::string(Name(cell.stopped->ending().kind)) : "";
  }

  FakeSteps steps_;
  FakeRuntimeProvider provider_;
  RunObserver observer_;
  FakeClock clock_;
  RuntimePreparation runtimes_{provider_, observer_, clock_, RuntimeLimits()};
};

TEST_F(PreparingCellsTest, ACellIsReadyAsSoonAsItsOwnRuntimeIs) {
  provider_.cached = {"cached"};
  provider_.held = {"slow"};
  const auto cells = Begin({"slow", "cached", "quick", "slow"});
  std::vector<size_t> order;
  while (order.size() < 2) {
    const std::vector<CellSupply::Ready> ready = *cells->TakeWithin(absl::Seconds(1));
    for (const CellSupply::Ready& each : ready) order.push_back(*each.index);
  }
  EXPECT_THAT(order, ElementsAre(1, 2));
  EXPECT_FALSE(cells->done());
  provider_.Release();
  EXPECT_THAT(TakeAll(*cells), ElementsAre(0, 3));
  EXPECT_EQ(cells->cells()[1].worker.python, "/cached/python");
  EXPECT_EQ(cells->cells()[3].worker.python, "/made/slow");
}

TEST_F(PreparingCellsTest, EveryCellHasARecordFromTheBeginning) {
  const auto cells = Begin({"2.1", "2.2"});
  ASSERT_THAT(cells->records(), SizeIs(2));
  EXPECT_EQ(cells->records()[1].id, "cell of 2.2");
}

TEST_F(PreparingCellsTest, AFaultStopsOnlyItsCells) {
  const auto cells = Begin({"faulty", "conflict", "unbuildable", "offline", "2.1"});
  EXPECT_THAT(TakeAll(*cells), SizeIs(5));
  EXPECT_EQ(EndingOf(cells->cells()[0]), "tree-not-allowed");
  EXPECT_EQ(EndingOf(cells->cells()[1]), "no-solution");
  EXPECT_EQ(EndingOf(cells->cells()[2]), "install-failed");
  EXPECT_EQ(EndingOf(cells->cells()[3]), "registry-unreachable");
  EXPECT_EQ(EndingOf(cells->cells()[4]), "");
}

TEST_F(PreparingCellsTest, ARegistryThatAnswersNobodyIsAnError) {
  EXPECT_EQ(Failure(*Begin({"faulty", "offline"})), absl::UnavailableError("no network"));
  // As long as another request may be answered, nobody knows.
  provider_.held = {"slow"};
  const auto cells = Begin({"offline", "slow"});
  for (int i = 0; i < 5; ++i) EXPECT_THAT(*cells->TakeWithin(absl::Milliseconds(10)), IsEmpty());
  provider_.Release();
  TakeAll(*cells);
  EXPECT_EQ(EndingOf(cells->cells()[0]), "registry-unreachable");
}

TEST_F(PreparingCellsTest, AnErrorOfTheMachineEndsIt) {
  const auto cells = Begin({"2.1", "probeless"});
  EXPECT_THAT(Failure(*cells).message(), HasSubstr("disk full"));
}

TEST_F(PreparingCellsTest, AnInterruptEndsTheBeginning) {
  EXPECT_TRUE(absl::IsCancelled(
      PreparingCells::Begin(steps_, runtimes_, AllOf({"2.1"}), [] { return true; }).status()));
}

TEST_F(PreparingCellsTest, EqualRequestsShareOneLock) {
  const auto cells = Begin({"2.1", "2.1"});
  TakeAll(*cells);
  EXPECT_EQ(cells->cells()[0].lock, cells->cells()[1].lock);
}

}  // namespace
}  // namespace bkm
