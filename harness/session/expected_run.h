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

// What `bkm run` does with a file of expected red cells.

// Reads the file `asked`, or if that is empty the file that belongs to the matrix file
// (Expectations::FileOf). Absent if there is no such file, or `matrix_file` is empty, too. NotFound
// if `asked` does not exist.
absl::StatusOr<std::optional<Expectations>> FindExpectations(
    const std::string& asked, const std::filesystem::path& matrix_file);

// How a run differs from what is expected; nothing without expectations, or where it was
// interrupted. Points into `run`.
std::vector<Surprise> SurprisesOf(const std::optional<Expectations>& expectations,
                                  const RunRecord& run, bool whole);

// `cells`, and those that are red against expectation once more: a red cell that nobody knew of is
// measured twice before it is reported. Nothing more where there is no such cell, or where they
// were repeated already.
std::vector<PreparedCell> WithSuspects(const std::vector<PreparedCell>& cells, const RunRecord& run,
                                       const std::vector<Surprise>& surprises);

// retry.json: the cells that say nothing or vary, as filters for another run. Removed where there
// are none.
absl::Status WriteRetryList(const RunDirectory& directory, const RunRecord& run);

// For people: each surprise under a heading for its kind.
std::string SurprisesText(const std::vector<Surprise>& surprises);

}  // namespace bkm

#endif  // HARNESS_SESSION_EXPECTED_RUN_H_
