// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_REFERENCE_DATA_H_
#define HARNESS_JUDGE_REFERENCE_DATA_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/judge/step_files.h"
#include "harness/model/observation.h"
#include "harness/numerics/probe_folder.h"

namespace bkm {

// What cells of one probe are compared with. Read once, shared by all of them, never changed. A
// part that cannot be read makes finished cells `unsupported` where it is needed, and affects no
// other cell. A golden or floor that is Unavailable makes them `spurious`.
struct ReferenceData {
  absl::StatusOr<ProbeFolder> folder;
  absl::StatusOr<std::map<std::string, ObservedTensor>> weights;  // of the file
  absl::StatusOr<std::vector<GoldenStep>> golden;
  std::map<std::string, absl::StatusOr<std::vector<FloorStep>>> floors;  // by precision
  // Of the file; empty for runs older than the check that needs them.
  absl::StatusOr<std::map<std::string, ObservedTensor>> buffers =
      std::map<std::string, ObservedTensor>();
};

// Copies the reference data of a probe folder into `into`, once. Of weights and buffers only norms
// and sums are kept (weights.json, buffers.json).
absl::Status CopyReferenceData(const std::filesystem::path& probe_folder,
                               const std::filesystem::path& into);

// `probe_dir` was made by CopyReferenceData. `floors` are files by precision ("bf16", "fp32").
ReferenceData ReadReferenceData(const std::filesystem::path& probe_dir,
                                const std::filesystem::path& golden,
                                const std::map<std::string, std::filesystem::path>& floors);

}  // namespace bkm

#endif  // HARNESS_JUDGE_REFERENCE_DATA_H_
