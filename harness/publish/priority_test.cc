// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/priority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/publish/testing_table.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;

PlannedCell Planned(const std::string& id) {
  PlannedCell planned;
  planned.id = id;
  planned.cell.engine_subject = SubjectSpec{};
  return planned;
}

// A table of one row that expires on 2026-09-01, with a cell of each kind.
PublishedTable TableOfKinds() {
  PublishedRow row = AGoodRow();
  const PublishedCell cell = row.cells.front();
  row.expires = "2026-09-01";
  row.cells = {cell, cell, cell};
  row.cells[0].id = "known";
  row.cells[0].flaky = false;
  row.cells[0].contradicted_by.clear();
  row.cells[1] = row.cells[0];
  row.cells[1].id = "flaky";
  row.cells[1].flaky = true;
  row.cells[2] = row.cells[0];
  row.cells[2].id = "contradicted";
  row.cells[2].contradicted_by = {Evidence{}};
  return {.date = "2026-06-11", .runs = {}, .rows = {row}};
}

TEST(PriorityTest, NewCellsComeFirstAndKnownOnesLast) {
  const Priorities priorities(TableOfKinds(), "2026-08-01");
  EXPECT_EQ(priorities.Of(Planned("known")), Priority::kKnown);
  EXPECT_EQ(priorities.Of(Planned("flaky")), Priority::kSuspect);
  EXPECT_EQ(priorities.Of(Planned("contradicted")), Priority::kSuspect);
  EXPECT_EQ(priorities.Of(Planned("never seen")), Priority::kNew);
  PlannedCell control = Planned("never seen");
  control.cell.engine_subject.reset();
  EXPECT_EQ(priorities.Of(control), Priority::kKnown);
  control.cell.probe.drive = "trainer";  // the library's own: a row of the table, and none yet
  EXPECT_EQ(priorities.Of(control), Priority::kNew);
  std::vector<PlannedCell> plan = {Planned("known"), Planned("contradicted"), Planned("b"),
                                   Planned("flaky"), Planned("a")};
  plan[4].included = false;
  priorities.Sort(plan);
  std::vector<std::string> ids;
  for (const PlannedCell& planned : plan) ids.push_back(planned.id);
  EXPECT_THAT(ids, ElementsAre("b", "a", "contradicted", "flaky", "known"));
  EXPECT_EQ(priorities.Counts(plan), "1 new, 0 expired, 2 suspect, 1 known");
}

TEST(PriorityTest, AllCellsOfAnExpiredRowAreExpired) {
  const Priorities priorities(TableOfKinds(), "2026-09-02");
  EXPECT_EQ(priorities.Of(Planned("known")), Priority::kExpired);
  EXPECT_EQ(priorities.Of(Planned("flaky")), Priority::kExpired);
  EXPECT_EQ(Name(priorities.Of(Planned("known"))), "expired");
}

}  // namespace
}  // namespace bkm
