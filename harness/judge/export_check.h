// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_EXPORT_CHECK_H_
#define HARNESS_JUDGE_EXPORT_CHECK_H_

#include <map>
#include <string>
#include <vector>

#include "harness/judge/check_result.h"
#include "harness/judge/step_files.h"
#include "harness/model/observation.h"
#include "harness/numerics/packed_batch.h"

namespace bkm {

// The content of an export's tensor file.
struct ExportTensors {
  std::map<std::string, std::vector<double>> samples;  // by name, at the probe's places
  // [tokens] of the second step's batch, by transformers' eager attention in fp32, each document
  // alone.
  std::vector<double> log_probs;
};

absl::StatusOr<ExportTensors> ReadExport(const ObservedExport& exported,
                                         const std::filesystem::path& cell_dir);

struct ExportInput {
  const ObservedExport& seen;
  const ExportTensors& tensors;
  const std::map<std::string, ObservedTensor>& file;  // weights and buffers of the probe's file
  const StepTensors& trained;                         // the first step's
  // Of the second step. `floor` is nullptr if there is none for the precision of the export.
  const PackedBatch& batch;
  const GoldenStep& golden;
  const FloorStep* floor;
  double average_multiple;  // AverageMultiple() of the precision of `floor`
};

// Whether each exported type keeps what training in fp32 gave: "fp32", or "bf16" if a tensor was
// rounded. Empty for any other type.
std::string PrecisionOf(const ObservedExport& exported);

// Whether an export has the names of the weights file, fp32 or bf16 values, the values that the
// engine held after the first step (within the rounding of the type: 2^-8 for bf16, none for fp32),
// and, loaded by transformers in fp32, the golden's log-probs of the second step, by the floors of
// reports in fp32. A head that is tied to
// the embedding may have its own name, with the embedding's values. A buffer has no values to be
// compared with. Unseen if the first step changed no parameter (a warm-up that begins with rate 0).
// Failures are export-names and export-off, at the stage `export`.
CheckResult CheckExport(const ExportInput& input);

}  // namespace bkm

#endif  // HARNESS_JUDGE_EXPORT_CHECK_H_
