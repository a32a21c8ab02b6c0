// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/check/check_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/publish/testing_table.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
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

// Ids of what is suggested to the owner of `pairing`; the table's one row that works does so with
// flex, and refuses sdpa.
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

}  // namespace
}  // namespace bkm
