// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_RUN_DIFF_H_
#define HARNESS_PUBLISH_RUN_DIFF_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "harness/model/cell_record.h"
#include "harness/publish/evidence.h"
#include "harness/publish/published_table.h"
#include "harness/publish/row_lock.h"
#include "harness/source/git_history.h"
#include "harness/source/git_sources.h"

namespace bkm {

// What became of a cell from one run to another. Published: never rename.
enum class CellChange {
  kRegressed,      // was ok, is red
  kFixed,          // was red, is ok
  kChangedReason,  // red in another way
  kNew,            // only in the later run
  kGone,           // only in the earlier one
  kSpurious,       // one of the two says nothing, or contradicts itself
  kSame,
};
absl::string_view Name(CellChange change);

// A cell's verdict in short, flaky or not: "ok", "flaky: wrong at golden, log-probs-off", "not
// measured".
std::string OutcomeText(const CellRecord& record);

// Cells of the two runs; either may be null. They are the same where the same was asked.
struct CellPair {
  std::string asked;  // AskedText
  const CellRecord* before = nullptr;
  const CellRecord* after = nullptr;
};

// An engine or library that is another version in the later run.
struct SubjectMove {
  std::string source;
  PublishedVersion from, to;
  std::vector<HistoryCommit> commits;  // between the two, oldest first
  bool back = false;                   // `to` is the older one, and the commits were undone
  std::string trouble;                 // why the commits are not known
};

struct PackageMove {
  std::string name, from, to;  // empty: not there
};

// Cells that changed in the same way for the same reason, with what moved under them.
struct CauseGroup {
  CellChange change = CellChange::kSame;
  Verdict verdict;  // the red one; of a new or gone cell its own
  bool flaky = false;
  std::vector<CellPair> cells;
  std::vector<SubjectMove> moves;
  std::vector<PackageMove> packages;  // of the runtime
};

struct RunDiff {
  PublishedRun before, after;
  // Our own code inside the cells is another one: what changed may be our doing.
  bool harness_changed() const { return before.cell_code != after.cell_code; }
  std::map<CellChange, int> counts;
  std::vector<CauseGroup> groups;  // all changes but kSame: regressions first, then by size
};

// `before` and `after` must outlive the result. Commits come from `sources`, packages from `locks`;
// where either does not know, the diff says less.
RunDiff DiffRuns(const RunEvidence& before, const RunEvidence& after, GitSources& sources,
                 LockFinder& locks);

OrderedJson ToJson(const RunDiff& diff);  // diff.schema.json
std::string DiffText(const RunDiff& diff);
std::string DiffMarkdown(const RunDiff& diff);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_RUN_DIFF_H_
