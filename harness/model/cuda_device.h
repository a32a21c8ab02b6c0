// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_CUDA_DEVICE_H_
#define HARNESS_MODEL_CUDA_DEVICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "harness/base/fields.h"
#include "harness/model/probe.h"

namespace bkm {

// A GPU of one machine, as its driver describes it.
struct CudaDevice {
  std::string name;  // "NVIDIA H100 80GB HBM3"
  int major = 0;     // of the compute capability: 9 of 9.0
  int minor = 0;
  int64_t memory_mib = 0;  // all of it, whoever uses it
  std::string driver;      // version
  bool operator==(const CudaDevice&) const = default;
};
void Describe(Fields& fields, CudaDevice& device);

// "2 x NVIDIA A100-SXM4-40GB, driver 550.54": devices that are equal are counted. Empty for none.
std::string DevicesText(const std::vector<CudaDevice>& devices);

// Why a machine with these devices cannot run the probe, whatever the subjects do; empty if it can.
// A probe of a CPU runs on every machine, unless a CPU cannot do what it asks for.
std::string WhyDevicesCannot(const Probe& probe, const std::vector<CudaDevice>& devices);
// Whether a torch of this version ("2.13.0+cpu") is built without CUDA.
bool IsForCpus(absl::string_view torch);
// Why that torch cannot run the probe; empty if it can.
std::string WhyTorchCannot(const Probe& probe, const std::string& torch);

// How many cells of this memory limit share a machine's devices. A cell of one rank uses the first
// device; at least one cell always runs.
int CellsAtOnce(const std::vector<CudaDevice>& devices, int memory_mib);

}  // namespace bkm

#endif  // HARNESS_MODEL_CUDA_DEVICE_H_
