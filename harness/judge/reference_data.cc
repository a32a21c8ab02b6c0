// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/reference_data.h"

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/judge/load_check.h"
#include "harness/numerics/model_checkpoint.h"
#include "harness/numerics/safetensors.h"

namespace bkm {
namespace {

constexpr char kWeights[] = "weights.json";
constexpr char kBuffers[] = "buffers.json";

using Tensors = std::map<std::string, ObservedTensor>;

absl::StatusOr<Tensors> ReadTensors(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
  return TensorsFromJson(json, path.string());
}

absl::StatusOr<Tensors> ReadBuffers(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return Tensors();
  return ReadTensors(path);
}

// Weights have places, buffers have none.
absl::Status WriteTensors(const std::filesystem::path& probe_folder,
                          const std::filesystem::path& into) {
  ASSIGN_OR_RETURN(const SafetensorsFile places,
                   SafetensorsFile::Open(probe_folder / "places.safetensors"));
  ASSIGN_OR_RETURN(const std::vector<SafetensorsFile> files, OpenWeights(probe_folder / "model"));
  Json weights = Json::object(), buffers = Json::object();
  for (const std::string& name : WeightNames(files)) {
    ASSIGN_OR_RETURN(const StoredWeight weight, ReadWeight(files, name));
    const ObservedTensor tensor = Measure(weight.values);
    (places.Has(name) ? weights : buffers)[name] = {
        {"norm", tensor.norm}, {"sum", tensor.sum}, {"numel", tensor.numel}};
  }
  RETURN_IF_ERROR(WriteFile(into / kBuffers, ToText(buffers)));
  return WriteFile(into / kWeights, ToText(weights));
}

}  // namespace

absl::Status CopyReferenceData(const std::filesystem::path& probe_folder,
                               const std::filesystem::path& into) {
  std::error_code error;
  for (const char* file : {"probe.json", "batch.safetensors", "places.safetensors"}) {
    if (std::filesystem::exists(into / file, error)) continue;
    ASSIGN_OR_RETURN(const std::string content, ReadFile(probe_folder / file));
    RETURN_IF_ERROR(WriteFile(into / file, content));
  }
  if (std::filesystem::exists(into / kWeights, error) &&
      std::filesystem::exists(into / kBuffers, error))
    return absl::OkStatus();
  return WriteTensors(probe_folder, into);
}

ReferenceData ReadReferenceData(const std::filesystem::path& probe_dir,
                                const std::filesystem::path& golden,
                                const std::map<std::string, std::filesystem::path>& floors) {
  ReferenceData reference = {ReadProbeFolder(probe_dir),
                             ReadTensors(probe_dir / kWeights),
                             ReadGoldenFile(golden),
                             {},
                             ReadBuffers(probe_dir / kBuffers)};
  for (const auto& [precision, path] : floors)
    reference.floors.emplace(precision, ReadFloorFile(path));
  return reference;
}

}  // namespace bkm
