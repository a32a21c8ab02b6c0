// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/probe_evidence.h"

#include "harness/base/status_macros.h"
#include "harness/judge/load_check.h"
#include "harness/numerics/safetensors.h"

namespace bkm {
namespace {

absl::StatusOr<std::map<std::string, ObservedTensor>> MeasureFile(
    const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const SafetensorsFile weights, SafetensorsFile::Open(path));
  return Measure(weights);
}

}  // namespace

ProbeEvidence ReadProbeEvidence(const std::filesystem::path& probe_dir,
                                const std::filesystem::path& golden,
                                const std::map<std::string, std::filesystem::path>& floors) {
  ProbeEvidence evidence = {ReadProbeFolder(probe_dir),
                            MeasureFile(probe_dir / "model" / "model.safetensors"),
                            ReadGoldenFile(golden),
                            {}};
  for (const auto& [precision, path] : floors)
    evidence.floors.emplace(precision, ReadFloorFile(path));
  return evidence;
}

}  // namespace bkm
