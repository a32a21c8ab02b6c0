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

// Reads finished runs and puts what they say of the same cells together. Runs and judges nothing.

// A run directory that was read. The table's folder is what its `published.dir` starts from.
struct RunEvidence {
  std::filesystem::path root;
  PublishedRun published;
  RunRecord record;
};

// A run that is not finished is FailedPrecondition, unless it is `allowed` to be partial: then the
// cells without a verdict count as never run.
absl::StatusOr<RunEvidence> ReadRunEvidence(const std::filesystem::path& root,
                                            const std::filesystem::path& table_folder,
                                            bool allow_partial);

// When a cell was observed, RFC 3339: what its record says, else when its observation was written.
std::string MeasuredAt(const RunEvidence& run, const CellRecord& cell);

// A cell of one or several runs.
struct MergedCell {
  const CellRecord* record = nullptr;  // of the newest run that says something; lives in `runs`
  const RunEvidence* run = nullptr;
  std::string measured_at;
  Evidence evidence;
  std::vector<Evidence> contradicted_by;
};

struct MergedEvidence {
  std::vector<MergedCell> cells;             // asked for, with an engine: in the order of the runs
  std::map<std::string, Evidence> controls;  // by ControlKey
  int folders = 0;                           // cells left out: a folder is no version of anything
  int planted = 0;                           // left out: somebody broke them on purpose
};
// The newest evidence of a cell wins, but what says nothing never wins over what does. Pointers
// lead into `runs`.
MergedEvidence Merge(const std::vector<RunEvidence>& runs);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_EVIDENCE_H_
