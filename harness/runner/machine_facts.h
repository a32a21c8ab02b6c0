// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_MACHINE_FACTS_H_
#define HARNESS_RUNNER_MACHINE_FACTS_H_

#include <filesystem>

#include "harness/model/observation.h"

namespace bkm {

// Whether this machine lacks what an exception may claim that it lacked: disk space at `cell_dir`,
// or the memory that a cell may use. Call it when the cell has ended: its own memory is available
// again. For "machine" of an observation.
ObservedMachine MachineFacts(const std::filesystem::path& cell_dir, int memory_mib);

// From what a node sends; what is missing is false.
ObservedMachine MachineFactsOf(const Json& json);

}  // namespace bkm

#endif  // HARNESS_RUNNER_MACHINE_FACTS_H_
