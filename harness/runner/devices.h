// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_DEVICES_H_
#define HARNESS_RUNNER_DEVICES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/model/cuda_device.h"
#include "harness/runner/task.h"

namespace bkm {

// This machine's CUDA devices, in the order of their driver's numbers; of these, the ones that
// CUDA_VISIBLE_DEVICES leaves visible, in its order, as CUDA does. None where no driver is
// installed. Unavailable: a driver is installed and does not answer, with its own words.
// Asks the program that comes with the driver, so that no program of ours loads the driver.
absl::StatusOr<std::vector<CudaDevice>> FindDevices(const std::string& program = "nvidia-smi");

// Lets a prepared cell that asks for a CUDA device run on these, beside as many others as the
// memory limit of a cell allows. Changes no other cell.
void UseDevices(const std::vector<CudaDevice>& devices, int memory_mib, PreparedCell& cell);

}  // namespace bkm

#endif  // HARNESS_RUNNER_DEVICES_H_
