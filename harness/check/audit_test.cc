// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/check/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/base/shape_check.h"
#include "harness/model/dimension.h"
#include "harness/publish/testing_table.h"

namespace bkm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kDay[] = "2026-07-01";
constexpr char kVerl[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

// A table with AGoodRow(), in which flex works and sdpa is refused, and these cells.
class AuditTest : public ::testing::Test {
 protected:
  void Add(const std::string& id, VerdictKind kind) {
    PublishedCell cell =
        ACell("flex", {.kind = kind, .stage = Stage::kMask, .reason = "mask-leak"});
    if (kind == VerdictKind::kOk) cell.evidence.verdict.reason = "";
    cell.probe = *ProbeOfId("attention=flex," + id);  // the last of a key counts
    row_.cells.push_back(std::move(cell));
  }

  AuditReport Audited(const std::string& requirements, const std::string& uses = "") {
    table_.date = "2026-06-11";
    table_.rows = {row_};
    return Audit(*PinnedVersionsOf(requirements, "r.txt"), table_, *ParseUses(uses), kDay);
  }
  // Of the row's own versions.
  AuditedPair Known(const std::string& uses = "") {
    return Audited(absl::StrCat("verl @ git+https://example.org/verl@", kVerl,
                                "\ntorchtitan==0.3.0\ntorch==2.13.0+cpu\n"),
                   uses)
        .pairs.at(0);
  }
  // "layout=dp_shard=2: wrong at mask, mask-leak"
  static std::vector<std::string> FaultsOf(const AuditedPair& pair) {
    std::vector<std::string> told;
    for (const AuditFault& fault : pair.faults) {
      std::string text = fault.applies ? "! " : "";
      for (const auto& [key, value] : fault.condition) absl::StrAppend(&text, key, "=", value, " ");
      told.push_back(absl::StrCat(text, fault.verdict));
    }
    return told;
  }

  PublishedRow row_ = AGoodRow();
  PublishedTable table_;
};

TEST_F(AuditTest, ARowOfTheseVersionsAnswers) {
  const AuditedPair pair = Known();
  EXPECT_EQ(pair.answer, AuditAnswer::kWorks);
  EXPECT_EQ(pair.name, "verl aaaaaaaaa x torchtitan 0.3.0, torch 2.13.0+cpu");
  EXPECT_THAT(pair.works_with, ElementsAre("flex"));
  EXPECT_THAT(pair.rows, ElementsAre(row_.id));
  EXPECT_EQ(pair.line, 1);
  EXPECT_THAT(FaultsOf(pair), ElementsAre("attention=sdpa refused at construct, refused-option"));
}

// An attention that is right with an option only does not work by default.
TEST_F(AuditTest, WhatWorksIsSaidByCellsWithoutOptions) {
  Add("attention=varlen,entropy=true", VerdictKind::kOk);
  EXPECT_THAT(Known().works_with, ElementsAre("flex"));
  row_.cells.erase(row_.cells.begin(), row_.cells.begin() + 2);
  EXPECT_THAT(Known().works_with, ElementsAre("varlen"));
}

TEST_F(AuditTest, AFaultHasTheLeastConditionThatNoRightCellMeets) {
  Add("layout=dp_shard=2", VerdictKind::kWrong);
  Add("layout=dp_shard=2,micro_batches=2", VerdictKind::kWrong);
  Add("model=llama3,micro_batches=2", VerdictKind::kOk);
  Add("model=llama3,entropy=true", VerdictKind::kWrong);
  Add("entropy=true", VerdictKind::kOk);
  EXPECT_THAT(FaultsOf(Known()),
              ElementsAre("layout=dp_shard=2 wrong at mask, mask-leak",
                          "entropy=true model=llama3 wrong at mask, mask-leak",
                          "attention=sdpa refused at construct, refused-option"));
}

TEST_F(AuditTest, WhatTheUserUsesApplies) {
  Add("layout=dp_replicate=2", VerdictKind::kWrong);
  Add("optimizer=decay:linear+total_steps:3", VerdictKind::kWrong);
  EXPECT_FALSE(HasFindings({.pairs = {Known()}}, /*strict=*/true));
  EXPECT_TRUE(HasFindings({.pairs = {Known("layout=dp_replicate,model=qwen3")}}, false));
  EXPECT_TRUE(HasFindings({.pairs = {Known("optimizer=decay")}}, false));
  EXPECT_TRUE(HasFindings({.pairs = {Known("attention=sdpa")}}, false));
  EXPECT_FALSE(HasFindings({.pairs = {Known("layout=tp,layout=dp_shard")}}, false));
}

// packed is what an engine gets that nobody asks for padding.
TEST_F(AuditTest, AFaultOfTheDefaultApplies) {
  row_.cells.clear();
  Add("input=padded", VerdictKind::kOk);
  Add("model=qwen3", VerdictKind::kWrong);
  EXPECT_THAT(FaultsOf(Known()), ElementsAre("! input=packed wrong at mask, mask-leak"));
  EXPECT_THAT(FaultsOf(Known("input=padded")),
              ElementsAre("input=packed wrong at mask, mask-leak"));
}

TEST_F(AuditTest, APairWithoutARightCellIsBrokenOrSilentlyWrong) {
  row_.cells.erase(row_.cells.begin());
  EXPECT_EQ(Known().answer, AuditAnswer::kBroken);
  Add("model=qwen3", VerdictKind::kWrong);
  EXPECT_EQ(Known().answer, AuditAnswer::kWrong);
  EXPECT_TRUE(HasFindings({.pairs = {Known()}}, false));
  row_.cells.clear();
  Add("model=qwen3", VerdictKind::kSpurious);
  EXPECT_EQ(Known().because, "no cell of this row gave a result");
}

TEST_F(AuditTest, AFlakyCellIsAFaultAndNeverRight) {
  row_.cells[0].flaky = true;
  EXPECT_EQ(Known().answer, AuditAnswer::kBroken);
}

TEST_F(AuditTest, AnotherVersionIsUnknownAndTheNearestSaysWhatToChange) {
  const AuditReport report = Audited("verl==0.9.1\ntorchtitan==0.3.0\ntorch==2.12.0\n");
  const AuditedPair& pair = report.pairs.at(0);
  EXPECT_EQ(pair.answer, AuditAnswer::kUnknown);
  EXPECT_EQ(pair.because, "the table has no row of these versions");
  ASSERT_THAT(pair.nearest, SizeIs(1));
  EXPECT_THAT(ToSummary(report), HasSubstr("verl 0.9.1 -> v0.8.0 (aaaaaaaaa, 2026-05-20), torch "
                                           "2.12.0 -> 2.13.0 (works-except, measured "
                                           "2026-06-01; row "));
  EXPECT_FALSE(HasFindings(report, /*strict=*/false));
  EXPECT_TRUE(HasFindings(report, /*strict=*/true));
}

TEST_F(AuditTest, WhatAFileLeavesOpenIsUnknown) {
  EXPECT_EQ(Audited("verl>=0.8\ntorchtitan==0.3.0\n").pairs.at(0).because,
            "verl has a range (>=0.8), torch is not named");
}

TEST_F(AuditTest, AReleaseInsideARangeIsThatOfTheRowAndAPreReleaseIsNot) {
  row_.library_from = AVersion("pypi:torchtitan==0.2.0", "0.2.0", "2026-05-01");
  const auto answer = [&](const std::string& version) {
    return Audited(absl::StrCat("verl @ git+https://example.org/verl@", kVerl,
                                "\ntorchtitan==", version, "\ntorch==2.13.0\n"))
        .pairs.at(0)
        .answer;
  };
  EXPECT_EQ(answer("0.2.5"), AuditAnswer::kWorks);
  for (const char* version : {"0.2.5rc1", "0.2.5.dev20260601", "0.1.9", "0.3.1"})
    EXPECT_EQ(answer(version), AuditAnswer::kUnknown) << version;
}

TEST_F(AuditTest, ALibraryAloneIsItsOwnPair) {
  const AuditedPair pair = Audited("torchtitan==0.3.0\ntorch==2.13.0\n").pairs.at(0);
  EXPECT_EQ(pair.engine, "torchtitan");
  EXPECT_EQ(pair.because, "the table has no row of torchtitan");
  EXPECT_THAT(Audited("numpy==2.0\n").pairs, IsEmpty());
}

TEST_F(AuditTest, ALibraryAloneIsLookedUpAsItsOwnTrainerDrivesIt) {
  row_.engine = "transformers-trainer";
  row_.engine_version = {};
  row_.library = "transformers";
  row_.library_from = row_.library_to = AVersion("pypi:transformers==5.10.2", "5.10.2", "");
  row_.library_versions = {row_.library_to};
  const AuditedPair pair = Audited("transformers==5.10.2\ntorch==2.13.0\n").pairs.at(0);
  EXPECT_EQ(pair.engine, "transformers-trainer");
  EXPECT_EQ(pair.answer, AuditAnswer::kWorks);
}

TEST_F(AuditTest, AnUnknownKeyOfUsesIsTold) {
  EXPECT_EQ(ParseUses("layuot=tp").status().message(),
            "--uses: unknown key 'layuot': did you mean 'layout'?");
  EXPECT_EQ(ParseUses("layout").status().message(), "--uses: 'layout' is not KEY=VALUE");
}

TEST_F(AuditTest, ItsJsonIsWhatTheSchemaSays) {
  Add("layout=dp_shard=2", VerdictKind::kWrong);
  AuditReport report = Audited("verl==0.9.1\ntorchtitan==0.3.0\ntorch==2.13.0\n-r x.txt\n");
  report.pairs.push_back(Known());
  constexpr char kSchema[] = "harness/check/audit.schema.json";
  EXPECT_TRUE(SchemaAccepts(kSchema, Json(ToJson(report))));
  EXPECT_THAT(SchemaDifferences<AuditReport>(*ReadJsonFile(kSchema)), IsEmpty());
}

TEST_F(AuditTest, AnnotationsNameTheFileAndTheLine) {
  Add("layout=dp_shard=2", VerdictKind::kWrong);
  AuditReport report{.origin = "a:b,c.txt", .pairs = {Known("layout=dp_shard=2")}};
  const std::string text = ToGithub(report, false);
  EXPECT_THAT(text, AllOf(HasSubstr("::notice file=a%3Ab%2Cc.txt,line=1,title=bkm audit::verl "),
                          HasSubstr("\n::error file=a%3Ab%2Cc.txt,line=1,title=bkm audit::"),
                          HasSubstr("\n::warning file="), Not(HasSubstr("\x1b"))));
}

TEST_F(AuditTest, SarifHasALevelAndAPlaceForEachRemark) {
  Add("layout=dp_shard=2", VerdictKind::kWrong);
  const Json sarif(ToSarif({.origin = "r.txt", .pairs = {Known()}}, false));
  const Json& run = sarif["runs"][0];
  EXPECT_EQ(run["tool"]["driver"]["name"], "bkm");
  ASSERT_THAT(run["results"], SizeIs(3));
  EXPECT_EQ(run["results"][1]["ruleId"], "silently-wrong");
  EXPECT_EQ(run["results"][1]["level"], "warning");
  EXPECT_EQ(run["results"][1]["locations"][0]["physicalLocation"]["region"]["startLine"], 1);
}

}  // namespace
}  // namespace bkm
