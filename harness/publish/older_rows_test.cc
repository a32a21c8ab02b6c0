// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/older_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "harness/publish/rows.h"
#include "harness/publish/testing_runs.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kOld[] = "2026-06-01T00:00:00Z", kNew[] = "2026-06-09T00:00:00Z";

std::vector<PublishedRow> Measured(std::vector<CellRecord> cells) {
  return RowsOf(Merge({ARun("../runs/x", std::move(cells))}), kMaxAgeDays);
}
// The table of one run, in a folder of its own.
TableOnDisk Older(std::vector<CellRecord> cells) {
  TableOnDisk older{.folder = "/tables/old"};
  older.table.runs = {{.dir = "../runs/x", .matrix = "m"}};
  older.table.rows = Measured(std::move(cells));
  return older;
}
std::vector<PublishedRow> Together(std::vector<CellRecord> cells, const TableOnDisk& older) {
  return WithOlderRows(Measured(std::move(cells)), older, "/new", kMaxAgeDays);
}
// "flex ok, sdpa broken"
std::vector<std::string> Told(const PublishedRow& row) {
  std::vector<std::string> told;
  for (const PublishedCell& cell : row.cells)
    told.push_back(absl::StrCat(cell.probe.attention, " ", Name(cell.evidence.verdict.kind)));
  return told;
}

TEST(OlderRowsTest, ARowHasTheCellsOfBothAndIsAsOldAsItsOldest) {
  const std::vector<PublishedRow> rows =
      Together({ARecord("flex", Ok(), kNew)}, Older({ARecord("sdpa", Broken(), kOld)}));
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_THAT(Told(rows[0]), ElementsAre("flex ok", "sdpa broken"));
  EXPECT_EQ(rows[0].status, RowStatus::kWorksExcept);
  EXPECT_EQ(rows[0].measured, "2026-06-01");
  EXPECT_EQ(rows[0].cells[1].evidence.run, "../tables/runs/x") << "relative to the new folder";
}

TEST(OlderRowsTest, ACellOfBothHasItsNewerMeasurementWhicheverSideThatIs) {
  const std::vector<PublishedRow> newer =
      Together({ARecord("flex", Broken(), kNew)}, Older({ARecord("flex", Ok(), kOld)}));
  ASSERT_THAT(newer, SizeIs(1));
  EXPECT_THAT(Told(newer[0]), ElementsAre("flex broken"));
  ASSERT_THAT(newer[0].cells[0].contradicted_by, SizeIs(1));
  EXPECT_EQ(newer[0].cells[0].contradicted_by[0].verdict.kind, VerdictKind::kOk);

  const std::vector<PublishedRow> older =
      Together({ARecord("flex", Broken(), kOld)}, Older({ARecord("flex", Ok(), kNew)}));
  ASSERT_THAT(older, SizeIs(1));
  EXPECT_THAT(Told(older[0]), ElementsAre("flex ok"));
  EXPECT_THAT(older[0].cells[0].contradicted_by, SizeIs(1));
}

TEST(OlderRowsTest, AnotherLockIsAnotherRow) {
  CellRecord other = ARecord("sdpa", Ok(), kOld);
  other.lock = std::string(64, 'c');
  const std::vector<PublishedRow> rows = Together({ARecord("flex", Ok(), kNew)}, Older({other}));
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[1].lock, other.lock);
}

TEST(OlderRowsTest, ARangeIsTakenApartAndOnlyItsNewestVersionHasALock) {
  TableOnDisk older = Older({ARecord("flex", Ok(), kOld)});
  PublishedRow& range = older.table.rows[0];
  range.library_from = {.subject = "pypi:torchtitan==0.2.0", .label = "0.2.0"};
  range.library_versions.insert(range.library_versions.begin(), range.library_from);
  range.cells.push_back(range.cells[0]);
  range.cells.back().library = range.library_from.subject;
  range.cells.back().id = "of 0.2.0";
  const std::vector<PublishedRow> rows = Together({ARecord("sdpa", Ok(), kNew)}, older);
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_THAT(Told(rows[0]), ElementsAre("sdpa ok", "flex ok"));
  EXPECT_EQ(rows[1].library_to, range.library_from);
  EXPECT_THAT(rows[1].cells, SizeIs(1));
  EXPECT_THAT(rows[1].lock, IsEmpty());
}

}  // namespace
}  // namespace bkm
