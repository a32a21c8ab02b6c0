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
#include "harness/publish/speed_diff.h"
#include "harness/source/git_history.h"
#include "harness/source/git_sources.h"

namespace bkm {

// How a cell changed between two runs. Published: never rename.
enum class CellChange {
  kRegressed,      // was ok, fails or is unsupported
  kFixed,          // failed, is ok
  kChangedReason,  // fails in another way
  kNew,            // only in the later run
  kGone,           // only in the earlier one
  kSpurious,       // one of the two is spurious, skipped or flaky
  kSame,
};
absl::string_view Name(CellChange change);

// A cell's verdict without its message: "ok", "flaky: wrong at golden, log-probs-off" or "not
// measured".
std::string OutcomeText(const CellRecord& record);

// An engine or library that has another version in the later run.
struct SubjectMove {
  std::string source;
  PublishedVersion from, to;
  std::vector<HistoryCommit> commits;  // between the two, oldest first
  bool back = false;                   // `to` is older, and `commits` were undone
  std::string trouble;                 // why the commits are unknown
};

struct PackageMove {
  std::string name, from, to;  // empty if not installed
};

// Cells that changed in the same way for the same reason, and the versions that changed with them.
struct CauseGroup {
  CellChange change = CellChange::kSame;
  Verdict verdict;  // the failing one; of a new or gone cell its own
  bool flaky = false;
  std::vector<CellPair> cells;
  std::vector<SubjectMove> moves;
  std::vector<PackageMove> packages;  // of the runtime
  // Of cells that are wrong in both runs: "load: weights-not-loaded".
  std::vector<std::string> claims_fixed, claims_new;
};

struct RunDiff {
  PublishedRun before, after;
  // The harness code in the cells differs, so the harness itself may have caused a change.
  bool harness_changed() const { return before.cell_code != after.cell_code; }
  std::map<CellChange, int> counts;
  std::vector<CauseGroup> groups;  // all changes but kSame: regressions first, then by size
  SpeedDiff speed;
};

// `before` and `after` must outlive the result. `sources` gives commits and `locks` packages; the
// diff leaves out what they do not have.
RunDiff DiffRuns(const RunEvidence& before, const RunEvidence& after, GitSources& sources,
                 LockFinder& locks);

OrderedJson ToJson(const RunDiff& diff);  // diff.schema.json
std::string DiffText(const RunDiff& diff);
std::string DiffMarkdown(const RunDiff& diff);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_RUN_DIFF_H_
