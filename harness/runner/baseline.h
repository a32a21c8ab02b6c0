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

// The commit that changed an accepted cell, and the evidence for that.
struct Mover {
  std::string commit;   // "git:torchtitan@<40 hex>"
  std::string because;  // the explanation of the user who accepted
  std::string proof;    // "stated": not proven; "bisect": found by a bisection
  std::string range;  // "inside": between the two versions; "unknown": the versions are no commits
  bool operator==(const Mover&) const = default;
};

// The last accepted run of one cell.
struct AcceptedCell {
  std::string engine_subject;  // exact; empty for a control
  std::string library_subject;
  std::string lock;
  std::string
      golden;  // identifies the probe and its data; runs with different goldens are not comparable
  std::string verdict;
  std::string stage;
  std::string reason;
  std::string numbers;  // folder of its step files below the baseline's; empty: did not finish
  std::vector<Mover> moved_by;  // newest last
  bool operator==(const AcceptedCell&) const = default;
};

// A folder of accepted runs: `accepted.json`, and the numbers of each cell below `cells/`. Cells
// are identified by TrackName, which stays the same when their versions move.
class Baseline {
 public:
  // Empty if the folder does not exist yet.
  static absl::StatusOr<Baseline> Read(const std::filesystem::path& folder);

  const std::map<std::string, AcceptedCell>& cells() const { return cells_; }
  const std::filesystem::path& folder() const { return folder_; }

  // Copies the numbers of `cell` from its run and records the cell as accepted. Write() saves it.
  absl::Status Accept(const RunDirectory& run, const CellRecord& cell, std::optional<Mover> mover);
  absl::Status Write() const;

 private:
  // Removes numbers that no accepted cell names any more.
  absl::Status RemoveUnused() const;
  explicit Baseline(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path folder_;
  std::map<std::string, AcceptedCell> cells_;
};

// The id of a cell without its lock, with the versions as the user wrote them ("main", "v0.8.0").
std::string TrackName(const Cell& cell);

// How a cell of a run differs from its accepted run.
enum class Movement {
  kNew,       // no accepted run, or one of another probe
  kBitEqual,  // see DriftClass
  kWithinFloor,
  kReal,
  kVerdictChanged,
  kSame,       // the same verdict, and no numbers on either side
  kUnsettled,  // pending, spurious or flaky: not comparable
};
absl::string_view Name(Movement movement);

struct CellMovement {
  const CellRecord* cell = nullptr;
  std::string name;  // TrackName
  Movement movement = Movement::kNew;
  double multiple = 0;  // distance in floors, for kWithinFloor and kReal
  std::string what;     // for people: "ok -> wrong at mask, mask-leak", "log-probs in step 1"
};

// Compares the subject cells of `run`; controls and repeats are left out.
absl::StatusOr<std::vector<CellMovement>> CompareWithBaseline(const Baseline& baseline,
                                                              const RunRecord& run,
                                                              RunJudge& judge);

}  // namespace bkm

#endif  // HARNESS_RUNNER_BASELINE_H_
