// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/session/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/runner/run_directory.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

PlannedCell Planned(const std::string& engine, uint64_t seed, int steps = 1) {
  PlannedCell planned;
  planned.cell.engine = "fixture";
  planned.cell.engine_subject = SubjectSpec{SourceKind::kPypi, engine, "1"};
  planned.cell.library_subject = SubjectSpec{SourceKind::kPypi, "l", "1"};
  planned.cell.probe.attention = "flex";
  planned.cell.probe.seed = seed;
  planned.cell.probe.steps = steps;
  planned.id = CellId(planned.cell);
  return planned;
}

std::vector<int64_t> PlacesOf(const std::vector<PlannedCell>& plan, int index, int of) {
  return ChooseShard(plan, {index, of})->places;
}

TEST(ShardTest, TextIsPartOfWhole) {
  EXPECT_EQ(ParseShard("2/3")->index, 2);
  EXPECT_EQ(ParseShard("2/3")->of, 3);
  for (const char* text : {"", "2", "0/3", "4/3", "1/0", "a/b", "1/2/3", "-1/2", "1/99999999"})
    EXPECT_FALSE(ParseShard(text).ok()) << text;
}

TEST(ShardTest, EveryCellIsInOneShard) {
  std::vector<PlannedCell> plan;
  for (uint64_t i = 0; i < 50; ++i) plan.push_back(Planned(absl::StrCat("e", i % 7), i, 1 + i % 3));
  for (int of = 1; of <= 8; ++of) {
    std::multiset<int64_t> all;
    for (int index = 1; index <= of; ++index) {
      const std::vector<int64_t> places = PlacesOf(plan, index, of);
      all.insert(places.begin(), places.end());
    }
    EXPECT_EQ(all.size(), plan.size()) << of;
    EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), plan.size()) << of;
  }
}

TEST(ShardTest, CellsOfOneRuntimeStayTogether) {
  const std::vector<PlannedCell> plan = {Planned("a", 1), Planned("b", 1), Planned("a", 2),
                                         Planned("b", 2)};
  EXPECT_THAT(PlacesOf(plan, 1, 2), ElementsAre(0, 2));
  EXPECT_THAT(PlacesOf(plan, 2, 2), ElementsAre(1, 3));
}

TEST(ShardTest, ARuntimeWithMostOfTheCostIsDivided) {
  const std::vector<PlannedCell> plan = {Planned("a", 1), Planned("a", 2), Planned("a", 3),
                                         Planned("a", 4)};
  EXPECT_THAT(PlacesOf(plan, 1, 2), ElementsAre(0, 1));
  EXPECT_THAT(PlacesOf(plan, 2, 2), ElementsAre(2, 3));
}

TEST(ShardTest, LongCellsCountMore) {
  const std::vector<PlannedCell> plan = {Planned("a", 1, /*steps=*/30), Planned("b", 1),
                                         Planned("c", 1), Planned("d", 1)};
  EXPECT_THAT(PlacesOf(plan, 1, 2), ElementsAre(0));
  EXPECT_THAT(PlacesOf(plan, 2, 2), ElementsAre(1, 2, 3));
}

TEST(ShardTest, AShardWithoutCellsIsTold) {
  EXPECT_THAT(std::string(ChooseShard({Planned("a", 1)}, {2, 2}).status().message()),
              HasSubstr("shard 2/2 has no cell: the plan has 1"));
}

// Finished shards of a plan of four cells.
class MergeTest : public ::testing::Test {
 protected:
  MergeTest() : folder_(*CreateTempDirectory(::testing::TempDir(), "merge-")) {
    for (const char* engine : {"a", "b", "c", "d"}) plan_.push_back(Planned(engine, 1));
  }

  // The run of shard index/of in the folder `name`, as `change` makes its record.
  fs::path Write(
      const std::string& name, int index, int of,
      const std::function<void(RunRecord&)>& change = [](RunRecord&) {}) const {
    const RunDirectory directory(folder_ / name);
    RunRecord run{.matrix = "m", .finished = true, .sandbox = "full"};
    const ShardRecord shard = *ChooseShard(plan_, {index, of});
    for (const int64_t place : shard.places) {
      CellRecord& record = run.cells.emplace_back();
      record.cell = plan_[place].cell;
      record.id = plan_[place].id;
      record.dir = CellDirectory(record.cell, record.id);
      EXPECT_TRUE(directory.PrepareCell(record, {{"key", "k"}, {"dir", "shard"}}, "bkm").ok());
      EXPECT_TRUE(
          directory
              .WriteObservation(record, CellFacts::OfReport({{"schema", 1},
                                                             {"stages", Json::array()},
                                                             {"ending", {{"kind", "completed"}}}}))
              .ok());
    }
    run.made_by = {{"cell_code", "code"}, {"limits", {{"timeout_s", 1}}}};
    run.made_by["shard"] = WriteFields(shard);
    change(run);
    EXPECT_TRUE(directory.WriteRun(run).ok());
    return directory.root();
  }
  fs::path Out() const { return folder_ / "all"; }
  std::string Refusal(const std::vector<fs::path>& shards) const {
    const absl::Status status = MergeShards(shards, Out()).status();
    EXPECT_FALSE(fs::exists(Out()));
    for (const auto& entry : fs::directory_iterator(folder_))
      EXPECT_NE(entry.path().filename().string()[0], '.') << entry.path();
    return std::string(status.message());
  }

  const fs::path folder_;
  std::vector<PlannedCell> plan_;
};

TEST_F(MergeTest, CellsComeInTheOrderOfThePlanInWhateverOrderTheShardsAreNamed) {
  const absl::StatusOr<RunRecord> run = MergeShards({Write("2", 2, 2), Write("1", 1, 2)}, Out());
  ASSERT_TRUE(run.ok()) << run.status();
  const RunDirectory out(Out());
  const RunRecord read = *out.ReadRun();
  ASSERT_EQ(read.cells.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(read.cells[i].id, plan_[i].id);
    EXPECT_EQ(read.cells[i].verdict->kind, VerdictKind::kOk);
    EXPECT_TRUE(out.VerifyCell(read.cells[i]).ok());
    EXPECT_EQ((**out.ReadRequest(read.cells[i]))["dir"], out.cell(read.cells[i]).string());
    EXPECT_THAT(*ReadFile(out.cell(read.cells[i]) / "rerun.sh"), HasSubstr(Out().string()));
  }
  // The shards are as they were.
  const RunDirectory shard(folder_ / "1");
  const RunRecord before = *shard.ReadRun();
  for (const CellRecord& cell : before.cells) {
    EXPECT_TRUE(shard.VerifyCell(cell).ok());
    EXPECT_EQ((**shard.ReadRequest(cell))["dir"], "shard");
  }
}

TEST_F(MergeTest, MissingShardsAreNamed) {
  EXPECT_EQ(Refusal({Write("2", 2, 4), Write("3", 3, 4)}),
            "cells are missing: name the run of shard 1/4, 4/4");
}

TEST_F(MergeTest, OverlappingShardsAreNamed) {
  EXPECT_THAT(Refusal({Write("1", 1, 2), Write("again", 1, 2), Write("2", 2, 2)}),
              AllOf(HasSubstr("/1 and "), HasSubstr("/again overlap: both have engine=")));
}

TEST_F(MergeTest, ForeignShardsAreRefused) {
  const fs::path one = Write("1", 1, 2);
  const auto refusal = [&](const std::function<void(RunRecord&)>& change) {
    return Refusal({one, Write("2", 2, 2, change)});
  };
  EXPECT_THAT(refusal([](RunRecord& run) { run.matrix = "other"; }), HasSubstr("the matrix"));
  EXPECT_THAT(refusal([](RunRecord& run) { run.sandbox = "weak"; }), HasSubstr("the sandbox"));
  EXPECT_THAT(refusal([](RunRecord& run) { run.made_by["cell_code"] = "other"; }),
              HasSubstr("the build of bkm"));
  EXPECT_THAT(refusal([](RunRecord& run) { run.made_by["limits"]["timeout_s"] = 2; }),
              HasSubstr("the limits of cells"));
  EXPECT_THAT(refusal([](RunRecord& run) { run.made_by["shard"]["plan"] = "other"; }),
              HasSubstr("the plan"));
  EXPECT_THAT(refusal([](RunRecord& run) { run.made_by["shard"]["of"] = 3; }),
              HasSubstr("the number of shards"));
}

TEST_F(MergeTest, UnfinishedOrDamagedShardsAreRefused) {
  const fs::path one = Write("1", 1, 2);
  EXPECT_THAT(Refusal({one, Write("2", 2, 2, [](RunRecord& run) { run.finished = false; })}),
              HasSubstr("/2 is not finished: give its bkm run command again"));
  EXPECT_THAT(Refusal({one, Write("2", 2, 2, [](RunRecord& run) { run.made_by.erase("shard"); })}),
              HasSubstr("/2 is not a shard: bkm run --shard i/n writes one"));
  EXPECT_THAT(Refusal({one, Write("2", 2, 2, [](RunRecord& run) { run.cells.pop_back(); })}),
              HasSubstr("has 1 cells, and its shard has 2"));
  EXPECT_THAT(Refusal({one, Write("2", 2, 2,
                                  [](RunRecord& run) { run.made_by["shard"]["places"][0] = 77; })}),
              HasSubstr("has a cell outside of its plan"));
  EXPECT_THAT(Refusal({one, Write("2", 2, 2,
                                  [](RunRecord& run) { std::swap(run.cells[0], run.cells[1]); })}),
              HasSubstr("are not those of the plan"));
  const fs::path two = Write("2", 2, 2);
  const RunRecord run = *RunDirectory(two).ReadRun();
  ASSERT_TRUE(WriteFile(two / run.cells[0].dir / "observation.json", "{}").ok());
  EXPECT_THAT(Refusal({one, two}), HasSubstr("observation.json"));
}

TEST_F(MergeTest, AFolderThatIsThereStays) {
  ASSERT_TRUE(WriteFile(Out() / "mine", "").ok());
  const absl::Status status = MergeShards({Write("1", 1, 1)}, Out()).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("is there already"));
  EXPECT_TRUE(fs::exists(Out() / "mine"));
}

}  // namespace
}  // namespace bkm
