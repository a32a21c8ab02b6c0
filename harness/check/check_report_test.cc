// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/check/check_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/check/declared_requirements.h"
#include "harness/publish/testing_table.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

CellRecord Ran(const std::string& attention, VerdictKind kind) {
  CellRecord cell;
  cell.cell.probe.attention = attention;
  cell.verdict = Verdict{.kind = kind};
  return cell;
}

CheckedPairing APairing(std::vector<CellRecord> cells) {
  return {.kind = FindEngineKind("verl-torchtitan"), .cells = std::move(cells)};
}

// Ids of the rows that are suggested for `pairing`. The table's only working row works with flex
// and refuses sdpa.
std::vector<std::string> Suggested(const CheckedPairing& pairing) {
  std::vector<std::string> ids;
  for (const PublishedRow& row :
       NearestRows(ATable(), pairing, "pypi:verl==0.9.1", "2.13.0", "2026-06-11", 3))
    ids.push_back(row.id);
  return ids;
}

TEST(CheckReportTest, WhoseEngineDoesNotWorkIsToldWhatWorksSomehow) {
  EXPECT_THAT(Suggested(APairing({Ran("sdpa", VerdictKind::kBroken)})), ElementsAre(AGoodRow().id));
  EXPECT_THAT(Suggested(APairing({})), ElementsAre(AGoodRow().id));
}

TEST(CheckReportTest, WhoLacksAnAttentionIsToldOnlyWhereThatWorks) {
  EXPECT_THAT(
      Suggested(APairing({Ran("varlen", VerdictKind::kOk), Ran("flex", VerdictKind::kWrong)})),
      ElementsAre(AGoodRow().id));
  EXPECT_THAT(
      Suggested(APairing({Ran("flex", VerdictKind::kOk), Ran("sdpa", VerdictKind::kRefused)})),
      IsEmpty());
}

TEST(CheckReportTest, AFlakyCellOfARowDoesNotWork) {
  PublishedTable table = ATable();
  for (PublishedRow& row : table.rows) {
    for (PublishedCell& cell : row.cells) cell.flaky = true;
  }
  const CheckedPairing pairing =
      APairing({Ran("varlen", VerdictKind::kOk), Ran("flex", VerdictKind::kWrong)});
  EXPECT_THAT(NearestRows(table, pairing, "pypi:verl==0.9.1", "2.13.0", "2026-06-11", 3),
              IsEmpty());
}

TEST(CheckReportTest, BreaksOfTheStaticCheckCountOnlyForCellsThatNeverRan) {
  const auto without_result = [](Stage stage) {
    CheckedPairing pairing = APairing({Ran("flex", VerdictKind::kUnsupported)});
    pairing.cells.front().verdict->stage = stage;
    pairing.breaks.push_back({});
    return pairing;
  };
  EXPECT_EQ(AnswerOf(without_result(Stage::kImport)), CheckAnswer::kBroken);
  EXPECT_EQ(AnswerOf(without_result(Stage::kConstruct)), CheckAnswer::kBroken);
  EXPECT_EQ(AnswerOf(without_result(Stage::kForward)), CheckAnswer::kUnknown);
  CheckedPairing pairing = without_result(Stage::kForward);
  pairing.cells.push_back(Ran("sdpa", VerdictKind::kBroken));
  EXPECT_EQ(AnswerOf(pairing), CheckAnswer::kBroken);
}

// The torch of the known row for an environment with `torch`, from a table with rows of
// `published`.
std::string TorchOfKnownRow(const std::vector<std::string>& published, const std::string& torch) {
  PublishedTable table;
  for (const std::string& version : published) {
    table.rows.push_back(AGoodRow());
    table.rows.back().torch = version;
  }
  const PublishedRow row = AGoodRow();
  const std::optional<PublishedRow> known =
      KnownRow(table, {row.engine, row.engine_version.subject, row.library_to.subject, torch});
  return known ? known->torch : "none";
}

TEST(CheckReportTest, TorchVersionsAreComparedWholeAndNotByTheirBeginning) {
  EXPECT_EQ(TorchOfKnownRow({"2.1", "2.13.0"}, "2.13.0"), "2.13.0");
  EXPECT_EQ(TorchOfKnownRow({"2.1"}, "2.13.0"), "none");
  EXPECT_EQ(TorchOfKnownRow({"2.13.0"}, "2.13.01"), "none");
}

TEST(CheckReportTest, TheBuildOfATorchVersionDoesNotMatter) {
  EXPECT_EQ(TorchOfKnownRow({"2.13.0"}, "2.13.0+cpu"), "2.13.0");
  EXPECT_EQ(TorchOfKnownRow({"2.13.0+cpu"}, "2.13.0"), "2.13.0+cpu");
}

TEST(CheckReportTest, ARowIsKnownOnlyForTheVersionsThatItHolds) {
  const PublishedTable table = ATable();
  const PublishedRow row = AGoodRow();
  InstalledVersions installed{row.engine, row.engine_version.subject, row.library_to.subject,
                              row.torch};
  EXPECT_EQ(KnownRow(table, installed)->id, row.id);
  installed.library = "pypi:torchtitan==0.0.1";
  EXPECT_EQ(KnownRow(table, installed), std::nullopt);
}

TEST(CheckReportTest, RowsOfTheSameTorchAreNearer) {
  PublishedTable table;
  for (const char* torch : {"2.1", "2.13.0"}) {
    table.rows.push_back(AGoodRow());
    table.rows.back().torch = torch;
  }
  const std::vector<PublishedRow> nearest =
      NearestRows(table, APairing({}), "pypi:verl==0.9.1", "2.13.0+cpu", "2026-06-11", 3);
  EXPECT_THAT(nearest, ElementsAre(Field(&PublishedRow::torch, "2.13.0"),
                                   Field(&PublishedRow::torch, "2.1")));
}

TEST(DeclaredRequirementsTest, AreTheSentencesOfUvAndAnErrorWhereItCheckedNothing) {
  const auto sentences = SentencesOf(
      "Checked 3 packages in 1ms\nFound 2 incompatibilities\n"
      "The package `verl` requires `tensordict<=0.10.0`, but `0.12.0` is installed\n"
      "The package `a` requires `b`, but it's not installed\n");
  ASSERT_TRUE(sentences.ok()) << sentences.status();
  EXPECT_THAT(*sentences, ElementsAre("a requires b, but it's not installed",
                                      "verl requires tensordict<=0.10.0, but 0.12.0 is installed"));
  EXPECT_THAT(*SentencesOf("Checked 3 packages in 1ms\nAll installed packages are compatible\n"),
              IsEmpty());
  EXPECT_FALSE(SentencesOf("").ok());
  EXPECT_FALSE(SentencesOf("error: unexpected argument '--python-version' found\n").ok());
}

}  // namespace
}  // namespace bkm
