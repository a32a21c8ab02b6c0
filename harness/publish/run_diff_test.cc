// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/run_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "harness/base/files.h"
#include "harness/base/shape_check.h"
#include "harness/publish/testing_runs.h"
#include "harness/source/git_fixture.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RunDiffTest : public ::testing::Test {
 protected:
  RunDiffTest()
      : folder_(*CreateTempDirectory(::testing::TempDir(), "diff")), repository_(folder_ / "work") {
    fs::create_directory_symlink(repository_.git_dir(), folder_ / "torchtitan.git");
    for (const char* change : {"one", "two (#7)", "three"}) {
      repository_.Write("torchtitan/a.py", change);
      commits_.push_back(repository_.Commit(change, "2026-06-01"));
    }
  }

  // A cell of torchtitan's branch main, which then was at this commit.
  CellRecord AtMain(const std::string& attention, int commit, Verdict verdict) {
    CellRecord record = ARecord(attention, std::move(verdict));
    record.cell.library_subject = SubjectSpec{SourceKind::kGit, "torchtitan", commits_[commit]};
    record.cell.library_label = "main";
    record.library_date = "2026-06-01";
    record.id = CellId(record.cell);
    return record;
  }

  const RunDiff& Diff(std::vector<CellRecord> before, std::vector<CellRecord> after) {
    runs_ = {ARun("before", std::move(before)), ARun("after", std::move(after))};
    GitSources sources(catalog_, folder_, folder_ / "clones");
    LockFinder locks(runs_, folder_ / "cache");
    diff_ = DiffRuns(runs_[0], runs_[1], sources, locks);
    return diff_;
  }

  const fs::path folder_;
  GitFixture repository_;
  std::vector<std::string> commits_;
  SourceCatalog catalog_;
  std::vector<RunEvidence> runs_;
  RunDiff diff_;
};

TEST_F(RunDiffTest, ABranchThatMovedIsTheSameCellWithTheCommitsBetween) {
  EXPECT_EQ(
      DiffText(Diff({AtMain("flex", 0, Ok()), AtMain("varlen", 0, Ok())},
                    {AtMain("flex", 2, Broken("no 'X' (a.py:1)")),
                     AtMain("varlen", 2, Broken("no 'X' (b.py:2)"))})),
      absl::StrCat(
          "before -> after: 2 regressed\n\n"
          "regressed: broken at import, name-missing: no 'X'\n"
          "  verl-torchtitan v0.8.0 x torchtitan main, flex, bf16, torch 2.13.0 (ok -> broken "
          "at import, name-missing)\n"
          "  verl-torchtitan v0.8.0 x torchtitan main, varlen, bf16, torch 2.13.0 (ok -> "
          "broken at import, name-missing)\n"
          "  moved: torchtitan main (",
          commits_[0].substr(0, 9), ", 2026-06-01) -> main (", commits_[2].substr(0, 9),
          ", 2026-06-01), 2 commits\n    ", commits_[2].substr(0, 9), " 2026-06-01 three\n    ",
          commits_[1].substr(0, 9), " 2026-06-01 two (#7)\n"));
}

TEST_F(RunDiffTest, EveryKindOfChangeIsToldApart) {
  const Verdict spurious{.kind = VerdictKind::kSpurious, .stage = Stage::kStep, .reason = "killed"};
  CellRecord flaky = AtMain("sdpa", 0, Broken());
  flaky.stability = Stability{.runs = 2, .verdicts = {{"ok", 1}, {"broken", 1}}};
  CellRecord eager = AtMain("eager", 0, Broken("no 'X'")),
             other = AtMain("eager", 0, Broken("no 'Y'"));
  const RunDiff& diff =
      Diff({AtMain("flex", 0, Ok()), AtMain("varlen", 0, Broken()), AtMain("sdpa", 0, Ok()), eager,
            AtMain("old", 0, Ok()), AtMain("lost", 0, Ok()), AtMain("same", 0, Broken("a (x:1)"))},
           {AtMain("flex", 0, Broken()), AtMain("varlen", 0, Ok()), flaky, other,
            AtMain("young", 0, Broken()), AtMain("lost", 0, spurious),
            AtMain("same", 0, Broken("a (x:9)"))});
  EXPECT_EQ(diff.counts, (std::map<CellChange, int>{{CellChange::kRegressed, 1},
                                                    {CellChange::kFixed, 1},
                                                    {CellChange::kChangedReason, 1},
                                                    {CellChange::kNew, 1},
                                                    {CellChange::kGone, 1},
                                                    {CellChange::kSpurious, 2},
                                                    {CellChange::kSame, 1}}));
  EXPECT_EQ(diff.groups[0].change, CellChange::kRegressed);
}

TEST_F(RunDiffTest, ACellThatNothingVouchesForAnyMoreHasRegressed) {
  const Verdict blind{.kind = VerdictKind::kUnsupported,
                      .stage = Stage::kBackend,
                      .reason = "witness-missing",
                      .message = "no layer was seen"};
  const RunDiff& diff = Diff({AtMain("flex", 0, Ok()), AtMain("sdpa", 0, blind)},
                             {AtMain("flex", 0, blind), AtMain("sdpa", 0, blind)});
  EXPECT_EQ(diff.counts,
            (std::map<CellChange, int>{{CellChange::kRegressed, 1}, {CellChange::kSame, 1}}));
}

TEST_F(RunDiffTest, CellsOfOtherVersionsCorrespondIfNothingElseDiffers) {
  const auto at = [&](const char* attention, int commit, Verdict verdict) {
    CellRecord record = AtMain(attention, commit, std::move(verdict));
    record.cell.library_label = commits_[commit].substr(0, 9);
    record.id = CellId(record.cell);
    return record;
  };
  const ClaimOutcome failed = ClaimOutcome::kFailed;
  Verdict both{.kind = VerdictKind::kWrong,
               .stage = Stage::kLoad,
               .reason = "config-ignored",
               .message = "the frequency",
               .findings = {{"model", failed, Stage::kLoad, "config-ignored", "the frequency"},
                            {"load", failed, Stage::kGolden, "weights-not-loaded", "no bias"}},
               .failures = 2};
  Verdict one = both;
  one.failures = 1;
  const std::string text = DiffText(Diff({at("flex", 0, both)}, {at("flex", 2, one)}));
  EXPECT_THAT(text, HasSubstr("1 changed-reason"));
  EXPECT_THAT(text, HasSubstr("; no longer fails: load: weights-not-loaded"));
  EXPECT_THAT(text, HasSubstr("2 commits"));
  EXPECT_EQ(DiffText(Diff({at("flex", 2, one)}, {at("flex", 0, both)})).find("no longer"),
            std::string::npos);
  EXPECT_THAT(DiffText(diff_), HasSubstr("; fails now: load: weights-not-loaded"));
  // Two that ask the same could be meant.
  EXPECT_THAT(DiffText(Diff({at("flex", 0, one), at("flex", 1, one)}, {at("flex", 2, one)})),
              HasSubstr("2 gone"));
}

TEST_F(RunDiffTest, GoingBackIsSaid) {
  const RunDiff& diff = Diff({AtMain("flex", 2, Ok())}, {AtMain("flex", 1, Broken())});
  EXPECT_TRUE(diff.groups[0].moves[0].back);
  EXPECT_EQ(diff.groups[0].moves[0].commits.size(), 1u);
  EXPECT_THAT(DiffText(diff), HasSubstr(", 1 commit back\n"));
}

TEST_F(RunDiffTest, ADifferenceOfTheRuntimeIsNamed) {
  RuntimeLock old{.runtime = "cpu", .policy = "as-of", .python = "3.11"};
  old.packages = {{"numpy", "1.26.4", {"a"}}, {"six", "1.17.0", {"b"}}};
  RuntimeLock young = old;
  young.packages[0].version = "2.4.6";
  for (const RuntimeLock& lock : {old, young})
    ASSERT_TRUE(
        WriteFile(folder_ / "cache/locks" / (lock.Key() + ".json"), ToText(ToJson(lock))).ok());
  CellRecord before = AtMain("flex", 0, Ok()), after = AtMain("flex", 0, Broken());
  before.lock = old.Key();
  after.lock = young.Key();
  EXPECT_THAT(DiffText(Diff({before}, {after})), HasSubstr("  runtime: numpy 1.26.4 -> 2.4.6\n"));
}

TEST_F(RunDiffTest, OurOwnChangesAreOwnedUpTo) {
  Diff({AtMain("flex", 0, Ok())}, {AtMain("flex", 0, Broken())});
  EXPECT_EQ(DiffText(diff_).find("Our own code"), std::string::npos);
  diff_.after.cell_code = "another";
  EXPECT_THAT(DiffText(diff_),
              ::testing::StartsWith("before -> after: 1 regressed\nThe harness code in the cells "
                                    "differs between the runs and may have caused changes.\n"));
  EXPECT_EQ(ToJson(diff_)["harness_changed"], true);
}

TEST_F(RunDiffTest, SpeedsAreCompared) {
  std::vector<CellRecord> before, after;
  for (const char* attention : {"a", "b", "c", "d", "e", "flex"}) {
    before.push_back(AtMain(attention, 0, Ok()));
    after.push_back(AtMain(attention, attention == std::string("flex") ? 2 : 0, Ok()));
    before.back().cost.step_seconds = 0.5;
    before.back().measured = "2026-06-01T00:00:00Z";
    after.back().cost.step_seconds = attention == std::string("flex") ? 0.75 : 0.5;
    after.back().measured = "2026-06-02T00:00:00Z";
  }
  const RunDiff& diff = Diff(before, after);
  EXPECT_EQ(diff.groups.size(), 0u);
  const std::string slower =
      "slower: verl-torchtitan v0.8.0 x torchtitan main, flex, bf16, torch 2.13.0: 0.50 s -> "
      "0.75 s a step (1.50 times)\n";
  EXPECT_THAT(DiffText(diff), HasSubstr("  " + slower));
  EXPECT_THAT(DiffMarkdown(diff), HasSubstr("slower: verl"));
  EXPECT_EQ(ToJson(diff)["speed"]["slower"][0]["times"], 1.5);
}

TEST_F(RunDiffTest, MarkdownHoldsNoMarkupOfStrangers) {
  EXPECT_THAT(DiffMarkdown(Diff({AtMain("flex", 0, Ok())}, {AtMain("flex", 0, Broken("<b>|"))})),
              HasSubstr("### regressed: broken at import, name-missing: &lt;b&gt;\\|\n"));
}

TEST_F(RunDiffTest, JsonKeepsToItsSchema) {
  constexpr char kSchema[] = "harness/publish/diff.schema.json";
  const RunDiff& diff = Diff({AtMain("flex", 0, Ok()), AtMain("gone", 0, Ok())},
                             {AtMain("flex", 2, Broken()), AtMain("new", 0, Broken())});
  Json json = Json::parse(ToText(ToJson(diff)));
  EXPECT_TRUE(SchemaAccepts(kSchema, json)) << json;
  EXPECT_EQ(json["groups"][0]["moves"][0]["commits"][0]["pull_request"], 7);
  EXPECT_EQ(json["speed"]["compared"], 0);
  json["groups"][0].erase("change");
  EXPECT_FALSE(SchemaAccepts(kSchema, json));
}

}  // namespace
}  // namespace bkm
