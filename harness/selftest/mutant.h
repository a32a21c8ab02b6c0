// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SELFTEST_MUTANT_H_
#define HARNESS_SELFTEST_MUTANT_H_

#include <filesystem>
#include <optional>

#include "absl/status/statusor.h"
#include "harness/runner/task.h"
#include "harness/selftest/mutation.h"

namespace bkm {

// The folder that holds a subject's package in a prepared cell: its source tree, or the runtime's
// folder of packages. Nullopt if the cell has no such subject.
absl::StatusOr<std::optional<std::filesystem::path>> PackageFolder(const PreparedCell& cell,
                                                                   Party party);

// The cell with one changed file. The changed copy of the package lies in the empty folder
// `folder`, mostly as links; a package of the runtime gets an environment there that has all
// others. The cell's id names the mutation, and no observation stands for it.
absl::StatusOr<PreparedCell> MakeMutant(const PreparedCell& cell, const Mutation& mutation,
                                        const std::filesystem::path& folder);

// The same cell, recording which lines run.
PreparedCell RecordingCell(const PreparedCell& cell);

}  // namespace bkm

#endif  // HARNESS_SELFTEST_MUTANT_H_
