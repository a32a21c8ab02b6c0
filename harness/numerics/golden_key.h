// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_GOLDEN_KEY_H_
#define HARNESS_NUMERICS_GOLDEN_KEY_H_

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/model/probe.h"

namespace bkm {

// Raised whenever the reference would compute another golden or floor for the same probe folder.
inline constexpr int kReferenceVersion = 3;

// Names the golden of a probe, 32 hex digits: generator version, reference version and
// NumericsOf(probe). Precision, device and attention are not in it: a golden is the true answer.
// Look-up order: the run directory, the cache, golden/numeric/<key>.safetensors in the repository
// (a shortcut for common probes), and then the reference computes it.
std::string GoldenKey(const Probe& probe);

// Names a floor, which depends on the machine as well: `cpu_features` comes from CpuFeatures(), and
// `torch` is what `reference_worker --torch-version` prints.
std::string FloorKey(const Probe& probe, absl::string_view precision,
                     absl::string_view cpu_features, absl::string_view torch);

// The first processor's model name and a hash of its flags, "AMD EPYC 9B14 5f0c...". Kernels are
// chosen by the flags, and with them the last bits of a low-precision run.
absl::StatusOr<std::string> CpuFeatures(const std::filesystem::path& cpuinfo = "/proc/cpuinfo");

}  // namespace bkm

#endif  // HARNESS_NUMERICS_GOLDEN_KEY_H_
