// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_CONFINEMENT_H_
#define HARNESS_CELL_CONFINEMENT_H_

#include <filesystem>

#include "absl/status/statusor.h"
#include "harness/cell/confined_process.h"
#include "harness/cell/mount_tree.h"
#include "harness/cell/sandbox.h"

namespace bkm {

// kFull: a root folder with the machine's programs and libraries only.
absl::StatusOr<Confinement> SystemConfinement(const CellUsers& users);

// Adds a path as named and as resolved. A path that is there already, or is missing, is left out.
absl::Status AddPath(Confinement& confinement, const std::filesystem::path& path, Access access);

// What the cells of a worker in that root share with it.
Sandbox SharedWithCells(const Confinement& confinement);

}  // namespace bkm

#endif  // HARNESS_CELL_CONFINEMENT_H_
