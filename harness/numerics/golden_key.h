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

// Raise this whenever the reference would compute another golden or floor for the same probe
// folder.
inline constexpr int kReferenceVersion = 3;

// The key of a probe's golden, 32 hex digits: a hash of the generator's version, the reference's
// version and NumericsOf(probe). Precision, device and attention are left out, because the golden
// is the true answer. Look-up order: the run directory, the cache, golden/numeric/<key>.safetensors
// in the repository (a shortcut for common probes). If none has the golden, the reference computes
// it.
std::string GoldenKey(const Probe& probe);

// The key of a floor, which also depends on the sums that the probe's layout divides among ranks
// and on the machine: `cpu_features` comes from CpuFeatures(),
// and `torch` is the output of `reference_worker --torch-version`.
std::string FloorKey(const Probe& probe, absl::string_view precision,
                     absl::string_view cpu_features, absl::string_view torch);

// The first processor's model name and a hash of its flags, "AMD EPYC 9B14 5f0c...". The flags
// select kernels and so determine the last bits of a low-precision run.
absl::StatusOr<std::string> CpuFeatures(const std::filesystem::path& cpuinfo = "/proc/cpuinfo");

}  // namespace bkm

#endif  // HARNESS_NUMERICS_GOLDEN_KEY_H_
