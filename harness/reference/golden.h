// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REFERENCE_GOLDEN_H_
#define HARNESS_REFERENCE_GOLDEN_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/numerics/probe_folder.h"
#include "harness/reference/layers.h"
#include "harness/reference/sft_step.h"

namespace bkm {

// A probe folder with its weights, in fp32 as in the file.
struct LoadedProbe {
  ProbeFolder folder;
  ModelShape shape;
  Weights weights;
  Weights buffers;
};

// Reads the folder. The weights must be exactly those of the model.
absl::StatusOr<LoadedProbe> LoadProbe(const std::filesystem::path& folder);

// What the probe asks to be made of logits.
LogitsUse UseOf(const LoadedProbe& probe);

// All steps of the probe in `arithmetic`, starting from `weights`.
std::vector<StepFacts> RunSteps(const LoadedProbe& probe, const Weights& weights,
                                const Arithmetic& arithmetic);

// The golden file of harness/protocol/README.md. `predicted`: log-probs of step 0 by fault.
absl::Status WriteGolden(const LoadedProbe& probe, const std::vector<StepFacts>& steps,
                         const std::map<std::string, std::vector<double>>& predicted,
                         const std::filesystem::path& path);

// Reads a golden file back. Everything that `probe` needs must be there.
absl::StatusOr<std::vector<StepFacts>> ReadGolden(const LoadedProbe& probe,
                                                  const std::filesystem::path& path);

}  // namespace bkm

#endif  // HARNESS_REFERENCE_GOLDEN_H_
