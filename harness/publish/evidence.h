// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_EVIDENCE_H_
#define HARNESS_PUBLISH_EVIDENCE_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/model/cell_record.h"
#include "harness/publish/published_table.h"

namespace bkm {

// Reads finished runs and merges their evidence per cell. Runs and judges nothing.

// A run directory that was read. `published.dir` is relative to the table's folder.
struct RunEvidence {
  std::filesystem::path root;
  PublishedRun published;
  RunRecord record;
};

// An unfinished run is FailedPrecondition unless it is allowed to be partial; then cells without a
// verdict count as never run.
absl::StatusOr<RunEvidence> ReadRunEvidence(const std::filesystem::path& root,
                                            const std::filesystem::path& table_folder,
                                            bool allow_partial);

// When a cell was observed, RFC 3339: from its record, else from the time of its observation file.
std::string MeasuredAt(const RunEvidence& run, const CellRecord& cell);

// One cell, merged over runs.
struct MergedCell {
  const CellRecord* record = nullptr;  // of the newest measurement; points into `runs`
  const RunEvidence* run = nullptr;
  std::string measured_at;
  Evidence evidence;
  std::vector<Evidence> contradicted_by;
};

// Whether one measurement of a cell counts rather than another: what ran rather than what never ran
// or failed from outside, then the later one.
bool Replaces(const Evidence& found, const std::string& found_at, const Evidence& known,
              const std::string& known_at);
// Adds evidence that lost against `won` and says otherwise.
void AddContradictions(std::vector<Evidence> older, const Evidence& won,
                       std::vector<Evidence>& contradicted_by);
// A cell (MergedCell, PublishedCell) that lost against `cell`: what of it stays beside `cell`.
template <typename Cell>
void KeepOlder(Cell lost, Cell& cell) {
  lost.contradicted_by.push_back(std::move(lost.evidence));
  AddContradictions(std::move(lost.contradicted_by), cell.evidence, cell.contradicted_by);
}

struct MergedEvidence {
  std::vector<MergedCell> cells;             // all but controls, in the order of the runs
  std::map<std::string, Evidence> controls;  // by ControlKey
  int folders = 0;                           // cells left out because a folder has no version
  int planted = 0;                           // cells left out because of planted faults
};
// The newest measurement of a cell wins. A cell that ran and is unsupported is one: then an older
// verdict is only mentioned (`contradicted_by`). What never ran, is spurious or was skipped is used
// only without a measurement. Pointers point into `runs`.
MergedEvidence Merge(const std::vector<RunEvidence>& runs);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_EVIDENCE_H_
