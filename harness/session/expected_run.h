// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SESSION_EXPECTED_RUN_H_
#define HARNESS_SESSION_EXPECTED_RUN_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/report/expectations.h"
#include "harness/runner/run_directory.h"
#include "harness/runner/task.h"

namespace bkm {

// Reads the file `asked`, or if that is empty the file that belongs to the matrix file
// (Expectations::FileOf). Absent if there is no such file, or `matrix_file` is empty, too. NotFound
// if `asked` does not exist.
absl::StatusOr<std::optional<Expectations>> FindExpectations(
    const std::string& asked, const std::filesystem::path& matrix_file);

// How a run differs from its expectations. Empty without expectations, or if the run was
// interrupted. Points into `run`.
std::vector<Surprise> SurprisesOf(const std::optional<Expectations>& expectations,
                                  const RunRecord& run, bool whole);

// Appends a repeat of each unexpectedly red cell: such a cell is measured twice before it is
// reported. Cells that have repeats already are not repeated again.
std::vector<PreparedCell> WithSuspects(const std::vector<PreparedCell>& cells, const RunRecord& run,
                                       const std::vector<Surprise>& surprises);

// Writes retry.json: the spurious and the flaky cells, as filters for another run. Removes the file
// if there are none.
absl::Status WriteRetryList(const RunDirectory& directory, const RunRecord& run);

// For people: the surprises of each kind under a heading.
std::string SurprisesText(const std::vector<Surprise>& surprises);

}  // namespace bkm

#endif  // HARNESS_SESSION_EXPECTED_RUN_H_
