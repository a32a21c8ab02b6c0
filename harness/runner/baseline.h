// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_BASELINE_H_
#define HARNESS_RUNNER_BASELINE_H_

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/judge/drift.h"
#include "harness/model/cell_record.h"
#include "harness/runner/judging.h"
#include "harness/runner/run_directory.h"

namespace bkm {

// Who moved an accepted cell, and how that is known.
struct Mover {
  std::string commit;   // "git:torchtitan@<40 hex>"
  std::string because;  // in the words of who accepted
  std::string proof;    // "stated": nobody has shown it. "bisect": a bisection has
  std::string range;  // "inside": it lies between the two versions; "unknown": they are no commits
  bool operator==(const Mover&) const = default;
};

// The last accepted run of one cell.
struct AcceptedCell {
  std::string engine_subject;  // exact; empty for a control
  std::string library_subject;
  std::string lock;
  std::string
      golden;  // names the probe, its data and its golden: another one asks another question
  std::string verdict;
  std::string stage;
  std::string reason;
  std::string numbers;  // folder of its step files below the baseline's; empty: it did not finish
  std::vector<Mover> moved_by;  // newest last
  bool operator==(const AcceptedCell&) const = default;
};

// A folder of accepted runs: `accepted.json`, and the numbers of each cell below `cells/`. A cell
// keeps its place as its versions move: it is known by TrackName.
class Baseline {
 public:
  // An empty one where the folder is not there yet.
  static absl::StatusOr<Baseline> Read(const std::filesystem::path& folder);

  const std::map<std::string, AcceptedCell>& cells() const { return cells_; }
  const std::filesystem::path& folder() const { return folder_; }

  // Copies the numbers of `cell` out of its run and notes it as accepted; Write() keeps it.
  absl::Status Accept(const RunDirectory& run, const CellRecord& cell, std::optional<Mover> mover);
  absl::Status Write() const;

 private:
  explicit Baseline(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path folder_;
  std::map<std::string, AcceptedCell> cells_;
};

// The id of a cell with its versions as the user wrote them ("main", "v0.8.0"), without its lock.
std::string TrackName(const Cell& cell);

// How one cell of a run stands to its accepted run.
enum class Movement {
  kNew,       // none was accepted, or of another probe
  kBitEqual,  // see DriftClass
  kWithinFloor,
  kReal,
  kVerdictChanged,
  kSame,       // the same verdict, and no numbers on either side
  kUnsettled,  // pending, spurious or flaky: nothing can be said
};
absl::string_view Name(Movement movement);

struct CellMovement {
  const CellRecord* cell = nullptr;
  std::string name;  // TrackName
  Movement movement = Movement::kNew;
  double multiple = 0;  // in floors; of kWithinFloor and kReal
  std::string what;     // for people: "ok -> wrong at mask, mask-leak", "log-probs in step 1"
};

// Of the cells that were asked for, not of controls and repeats.
absl::StatusOr<std::vector<CellMovement>> CompareWithBaseline(const Baseline& baseline,
                                                              const RunRecord& run,
                                                              RunJudge& judge);

}  // namespace bkm

#endif  // HARNESS_RUNNER_BASELINE_H_
