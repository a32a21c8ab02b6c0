// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_MODEL_CHECKPOINT_H_
#define HARNESS_NUMERICS_MODEL_CHECKPOINT_H_

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "harness/model/probe.h"
#include "harness/numerics/model_shapes.h"
#include "harness/numerics/safetensors.h"

namespace bkm {

// The tensor files of a model folder. Weights are in one file (fp32) or in shards (bf16; experts
// may be MXFP4) with an index. They also hold the buffers, as save_pretrained writes them. The form
// with one file has an extra one for models of which torchtitan reads copies only.

// Writes the weights of `probe` into the model folder, in the form of Probe::checkpoint.
absl::Status WriteCheckpoint(const Probe& probe, const ModelShape& shape,
                             const std::filesystem::path& model);

// Whether every file of that form is there and none is cut off.
bool IsCheckpointComplete(const Probe& probe, const ModelShape& shape,
                          const std::filesystem::path& model);

// The files that have the weights: model.safetensors, or all shards that the index names.
absl::StatusOr<std::vector<SafetensorsFile>> OpenWeights(const std::filesystem::path& model);

// The file among `files` that has a tensor; an error of the first file if none has it.
absl::StatusOr<const SafetensorsFile*> FileWith(const std::vector<SafetensorsFile>& files,
                                                const std::string& tensor);

// The names of all tensors as the model calls them: a weight in MXFP4 is two tensors of a file.
std::set<std::string> WeightNames(const std::vector<SafetensorsFile>& files);

// The values of a weight, each exactly, in the model's own shape.
struct StoredWeight {
  std::vector<int64_t> shape;
  std::vector<float> values;
};
// An error that names the file if no file has it, or not as F32, BF16 or MXFP4.
absl::StatusOr<StoredWeight> ReadWeight(const std::vector<SafetensorsFile>& files,
                                        const std::string& name);

// A file that may be missing: weights under the names and in the layout of torchtitan's own
// exports. transformers does not read it, torchtitan reads every file.
std::filesystem::path ExtrasOf(const std::filesystem::path& model);

}  // namespace bkm

#endif  // HARNESS_NUMERICS_MODEL_CHECKPOINT_H_
