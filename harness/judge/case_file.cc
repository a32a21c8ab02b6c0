// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/case_file.h"

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"

namespace bkm {

std::string PrecisionOf(const Observation& observation, const Probe& probe) {
  return observation.precision_ran.empty() ? probe.precision : observation.precision_ran;
}

std::vector<std::string> FloorsFor(const Observation& observation, const Probe& probe) {
  std::vector<std::string> precisions = {PrecisionOf(observation, probe)};
  if (observation.forward_in_fp32 && precisions[0] != "fp32") precisions.push_back("fp32");
  return precisions;
}

absl::StatusOr<const std::vector<FloorStep>*> FloorOf(const JudgeInput& input) {
  return FloorOf(input, PrecisionOf(*input.observation, input.probe));
}

absl::StatusOr<const std::vector<FloorStep>*> FloorOf(const JudgeInput& input,
                                                      const std::string& precision) {
  const auto floor = input.reference->floors.find(precision);
  if (floor == input.reference->floors.end()) {
    return absl::NotFoundError(
        absl::StrCat("there is no floor for the precision ", precision, ", which the cell ran"));
  }
  RETURN_IF_ERROR(floor->second.status());
  return &*floor->second;
}

std::vector<std::vector<int64_t>> DocumentsOf(const CaseFile& file) {
  std::vector<std::vector<int64_t>> documents;
  if (!file.reference().folder.ok()) return documents;
  for (const PackedBatch& batch : file.reference().folder->steps)
    documents.push_back(batch.document_lengths);
  return documents;
}

CheckResult WithoutReference(Stage stage, const absl::Status& status) {
  CheckResult result = CheckResult::Unreadable(stage, status);
  if (absl::IsUnavailable(status)) result.reason = reason::kReferenceMissing;
  return result;
}

}  // namespace bkm
