// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_MEASURED_ON_H_
#define HARNESS_RUNNER_MEASURED_ON_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "harness/base/fields.h"
#include "harness/model/cell_record.h"
#include "harness/model/cuda_device.h"
#include "harness/model/sandbox_level.h"
#include "harness/runtime/runtime_lock.h"

namespace bkm {

// What the cells of a result ran on.
struct WorkMachine {
  std::string bkm;
  std::string cell_code;
  std::string sandbox;  // name of a SandboxLevel
  std::string cpu;      // CpuFeatures(): the model, and what decides the last bits
  int cores = 0;
  std::string system;               // kernel and its release
  std::vector<CudaDevice> devices;  // if a cell asks for one
  bool operator==(const WorkMachine&) const = default;
};
void Describe(Fields& fields, WorkMachine& machine);

// This machine, with the code of cells and the sandbox level that they run with here.
absl::StatusOr<WorkMachine> ThisMachine(const std::string& cell_code, SandboxLevel sandbox);

// What results from another machine were measured on.
struct MeasuredOn {
  WorkMachine machine;
  std::string python;  // "3.11"; empty: of cells that did not run
  std::string torch;   // version; empty: none
  int packages = 0;
  bool operator==(const MeasuredOn&) const = default;
};
void Describe(Fields& fields, MeasuredOn& measured);

// "AMD EPYC, 2 cores, Linux 6.1, sandbox full, bkm 1.0, Python 3.11, 90 packages, torch 2.13.0"
std::string MeasuredOnText(const MeasuredOn& measured);

// What the cells of a lock ran on.
MeasuredOn MeasuredOnOf(const WorkMachine& machine, const RuntimeLock* lock);

// Notes it in the folder of a cell.
absl::Status WriteMeasuredOn(const MeasuredOn& measured, const std::filesystem::path& cell);

// What such a note in the folder of a cell says. Absent for a cell of this machine: a note that the
// cell itself may have left names no machine of `run` (made_by.machines).
absl::StatusOr<std::optional<MeasuredOn>> ReadMeasuredOn(const RunRecord& run,
                                                         const std::filesystem::path& cell);

}  // namespace bkm

#endif  // HARNESS_RUNNER_MEASURED_ON_H_
