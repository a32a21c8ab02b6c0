// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SESSION_ACCEPTANCE_H_
#define HARNESS_SESSION_ACCEPTANCE_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/model/cell.h"
#include "harness/runner/baseline.h"
#include "harness/runner/run_directory.h"
#include "harness/source/git_sources.h"

namespace bkm {

// The upstream commit that, as the user states, moved cells.
class StatedMover {
 public:
  // `spec`: git:NAME@REV. `sources` must outlive the mover.
  static absl::StatusOr<StatedMover> Find(const std::string& spec, const std::string& because,
                                          GitSources& sources);

  // The mover of a cell whose accepted run was `before`; absent where the commit does not lie
  // between the two versions.
  absl::StatusOr<std::optional<Mover>> MoverOf(const AcceptedCell& before,
                                               const CellRecord& now) const;
  std::string ToString() const { return commit_.ToString(); }

 private:
  StatedMover(SubjectSpec commit, std::string because, GitSources& sources)
      : commit_(std::move(commit)), because_(std::move(because)), sources_(&sources) {}
  // Mover::range; empty where the commit is not between the two versions.
  absl::StatusOr<std::string> RangeOf(const AcceptedCell& before, const CellRecord& now) const;

  SubjectSpec commit_;
  std::string because_;
  GitSources* sources_;
};

struct Acceptance {
  int taken = 0;
  int kept = 0;
  std::vector<std::string> refused;  // a line for people per cell
};

// Takes the cells of a finished run that match a filter (none: all) into `baseline` and writes it.
// A cell that moved is taken only with its mover.
absl::StatusOr<Acceptance> AcceptRun(const RunDirectory& directory, const RunRecord& run,
                                     const std::vector<CellFilter>& filters,
                                     const std::optional<StatedMover>& mover, Baseline& baseline);

// Rewrites a file of expected failures by a finished run of a whole matrix, or makes it. Returns
// how many differences it took over.
absl::StatusOr<int> AcceptExpectations(const std::string& run_directory, const RunRecord& run,
                                       const std::filesystem::path& file);

}  // namespace bkm

#endif  // HARNESS_SESSION_ACCEPTANCE_H_
