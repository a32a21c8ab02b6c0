// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/torture/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace bkm {
namespace {

using Kind = JournalStep::Kind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// The steps of writing /r/f durably.
std::vector<JournalStep> DurableWrite(const std::string& content) {
  return {{Kind::kWrite, "/r/f.tmp", "", content},
          {Kind::kSync, "/r/f.tmp", "", content},
          {Kind::kRename, "/r/f.tmp", "/r/f", ""},
          {Kind::kSyncFolder, "/r", "", ""}};
}

// Every content that /r/f has after one of many power cuts; "-" when it is missing.
std::set<std::string> OutcomesAfter(const std::vector<JournalStep>& steps, size_t count) {
  CutDisk disk("/r");
  for (const JournalStep& step : DurableWrite("old")) disk.Apply(step);
  for (size_t i = 0; i < count; ++i) disk.Apply(steps[i]);
  std::mt19937_64 random(1);
  std::set<std::string> outcomes;
  for (int i = 0; i < 200; ++i) {
    const auto left = disk.Cut(random);
    const auto file = left.find("/r/f");
    outcomes.insert(file == left.end() ? "-" : file->second);
  }
  return outcomes;
}

TEST(JournalTest, ADurableWriteLeavesTheOldOrTheNewContentAtEachCut) {
  const std::vector<JournalStep> steps = DurableWrite("new");
  EXPECT_THAT(OutcomesAfter(steps, 0), ElementsAre("old"));
  EXPECT_THAT(OutcomesAfter(steps, 2), ElementsAre("old"));
  EXPECT_THAT(OutcomesAfter(steps, 3), ElementsAre("new", "old"));
  EXPECT_THAT(OutcomesAfter(steps, 4), ElementsAre("new"));
}

TEST(JournalTest, AWriteThatIsNotSyncedMayBeTorn) {
  const std::set<std::string> outcomes = OutcomesAfter(
      {{Kind::kWrite, "/r/f.tmp", "", "new"}, {Kind::kRename, "/r/f.tmp", "/r/f", ""}}, 2);
  EXPECT_TRUE(outcomes.contains("new"));
  EXPECT_TRUE(outcomes.contains("old"));
  EXPECT_TRUE(outcomes.contains("n"));
  EXPECT_TRUE(outcomes.contains(""));
  EXPECT_TRUE(outcomes.contains(std::string("n\0\0", 3)));
}

TEST(JournalTest, ARemovedFileMayComeBack) {
  EXPECT_THAT(OutcomesAfter({{Kind::kRemove, "/r/f", "", ""}}, 1), ElementsAre("-", "old"));
  EXPECT_THAT(
      OutcomesAfter({{Kind::kRemove, "/r/f", "", ""}, {Kind::kSyncFolder, "/r", "", ""}}, 2),
      ElementsAre("-"));
}

TEST(JournalTest, OnlyWhatWasSyncedWithItsNameIsSafe) {
  CutDisk disk("/r");
  disk.Apply({Kind::kWrite, "/r/a", "", "1"});
  disk.Apply({Kind::kSync, "/r/a", "", "1"});
  EXPECT_THAT(disk.Safe(), IsEmpty());
  disk.Apply({Kind::kSyncFolder, "/r", "", ""});
  EXPECT_THAT(disk.Safe(), ElementsAre(Pair("/r/a", "1")));
}

TEST(JournalTest, AFileInAFolderThatWasNotSyncedIsNotSafe) {
  CutDisk disk("/r");
  disk.Apply({Kind::kWrite, "/r/new/a", "", "1"});
  disk.Apply({Kind::kSync, "/r/new/a", "", "1"});
  disk.Apply({Kind::kSyncFolder, "/r/new", "", ""});
  EXPECT_THAT(disk.Safe(), IsEmpty());
  disk.Apply({Kind::kSyncFolder, "/r", "", ""});
  EXPECT_THAT(disk.Safe(), ElementsAre(Pair("/r/new/a", "1")));
}

TEST(JournalTest, ATornEndIsLeftOut) {
  const std::string whole = "write\t/r/a\t\t3\nx\ny\nsync-folder\t/r\t\t0\n\n";
  ASSERT_EQ(ParseJournal(whole).size(), 2u);
  EXPECT_EQ(ParseJournal(whole)[0].content, "x\ny");
  EXPECT_EQ(ParseJournal(whole.substr(0, whole.size() - 1)).size(), 1u);
  EXPECT_THAT(ParseJournal(whole.substr(0, 17)), IsEmpty());
}

}  // namespace
}  // namespace bkm
