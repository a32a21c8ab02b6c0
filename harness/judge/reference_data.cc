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

absl::StatusOr<std::map<std::string, ObservedTensor>> ReadWeights(
    const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
  // weights.json has the form of an observation's "load", so the observation's reader is used.
  ASSIGN_OR_RETURN(
      Observation observation,
      ObservationFromJson({{"ending", {{"kind", "completed"}}}, {"load", json}}, path.string()));
  return std::move(observation.load);
}

// Of the weights only: files of models may also hold buffers, which have no places.
absl::Status WriteWeights(const std::filesystem::path& probe_folder,
                          const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const SafetensorsFile places,
                   SafetensorsFile::Open(probe_folder / "places.safetensors"));
  ASSIGN_OR_RETURN(const std::vector<SafetensorsFile> files, OpenWeights(probe_folder / "model"));
  Json json = Json::object();
  for (const std::string& name : WeightNames(files)) {
    if (!places.Has(name)) continue;
    ASSIGN_OR_RETURN(const StoredWeight weight, ReadWeight(files, name));
    const ObservedTensor tensor = Measure(weight.values);
    json[name] = {{"norm", tensor.norm}, {"sum", tensor.sum}, {"numel", tensor.numel}};
  }
  return WriteFile(path, ToText(json));
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
  if (std::filesystem::exists(into / kWeights, error)) return absl::OkStatus();
  return WriteWeights(probe_folder, into / kWeights);
}

ReferenceData ReadReferenceData(const std::filesystem::path& probe_dir,
                                const std::filesystem::path& golden,
                                const std::map<std::string, std::filesystem::path>& floors) {
  ReferenceData reference = {
      ReadProbeFolder(probe_dir), ReadWeights(probe_dir / kWeights), ReadGoldenFile(golden), {}};
  for (const auto& [precision, path] : floors)
    reference.floors.emplace(precision, ReadFloorFile(path));
  return reference;
}

}  // namespace bkm
