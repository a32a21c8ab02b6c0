// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/model_checkpoint.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/numerics/model_weights.h"
#include "harness/numerics/mxfp4.h"
#include "harness/numerics/probe_data.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr char kSingle[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";
constexpr char kExtras[] = "torchtitan-extras.safetensors";
constexpr char kBlocks[] = "_blocks";
constexpr char kScales[] = "_scales";
// Three, so that layers, and what a library joins out of several tensors, lie across a border.
constexpr int kShards = 3;

bool IsSharded(const Probe& probe) { return probe.checkpoint != "single-fp32"; }

std::string ShardName(int shard) {
  return absl::StrFormat("model-%05d-of-%05d.safetensors", shard + 1, kShards);
}

bool HasExtras(const ModelShape& shape) { return !TransposedCopiesOf(shape).empty(); }

// [..., rows, columns] as [..., columns, rows].
StoredWeight Transposed(const StoredWeight& weight) {
  StoredWeight result = {weight.shape, std::vector<float>(weight.values.size())};
  const size_t rank = weight.shape.size();
  const int64_t rows = weight.shape[rank - 2], columns = weight.shape[rank - 1];
  std::swap(result.shape[rank - 2], result.shape[rank - 1]);
  for (size_t i = 0; i < weight.values.size(); ++i) {
    const int64_t matrix = i / (rows * columns), row = i / columns % rows, column = i % columns;
    result.values[(matrix * columns + column) * rows + row] = weight.values[i];
  }
  return result;
}

StoredWeight DrawTransposed(const WeightShape& weight, uint64_t seed) {
  return Transposed({weight.shape, DrawWeight(weight, seed)});
}

NamedTensor InFp32(const WeightShape& weight, uint64_t seed) {
  return NamedTensor::F32(weight.name, weight.shape, DrawWeight(weight, seed));
}

absl::Status WriteExtras(const Probe& probe, const ModelShape& shape, const fs::path& path) {
  std::vector<NamedTensor> tensors;
  const std::vector<TransposedCopy> copies = TransposedCopiesOf(shape);
  for (const WeightShape& weight : WeightsOf(shape)) {
    for (const TransposedCopy& copy : copies) {
      if (copy.of != weight.name) continue;
      const StoredWeight transposed = DrawTransposed(weight, probe.seed);
      tensors.push_back(NamedTensor::F32(copy.name, transposed.shape, transposed.values));
    }
  }
  return WriteSafetensors(path, std::move(tensors), {{"format", "pt"}});
}

absl::Status WriteSingle(const Probe& probe, const ModelShape& shape, const fs::path& model) {
  std::vector<NamedTensor> tensors;
  for (const WeightShape& tensor : TensorsOf(shape)) tensors.push_back(InFp32(tensor, probe.seed));
  RETURN_IF_ERROR(WriteSafetensors(model / kSingle, std::move(tensors), {{"format", "pt"}}));
  return HasExtras(shape) ? WriteExtras(probe, shape, model / kExtras) : absl::OkStatus();
}

// [..., in, out] becomes blocks of `in`: [..., out, in / 32, 16], and scales [..., out, in / 32].
std::vector<NamedTensor> InMxfp4(const WeightShape& weight, uint64_t seed) {
  StoredWeight transposed = DrawTransposed(weight, seed);
  Mxfp4 packed = ToMxfp4(transposed.values);
  std::vector<int64_t> shape = std::move(transposed.shape);
  shape.back() /= kMxfp4Block;
  NamedTensor scales = {weight.name + kScales, TensorType::kU8, shape, std::move(packed.scales)};
  shape.push_back(kMxfp4Block / 2);
  return {{weight.name + kBlocks, TensorType::kU8, shape, std::move(packed.blocks)},
          std::move(scales)};
}

// The tensors that a shard has for a weight.
std::vector<NamedTensor> Rounded(const Probe& probe, const ModelShape& shape,
                                 const WeightShape& weight) {
  // torchtitan's names and layout of experts are those of the published MXFP4 files.
  const std::vector<TransposedCopy> copies = TransposedCopiesOf(shape);
  const bool is_quantised =
      std::any_of(copies.begin(), copies.end(),
                  [&](const TransposedCopy& copy) { return copy.of == weight.name; });
  if (probe.checkpoint == "mxfp4" && is_quantised) return InMxfp4(weight, probe.seed);
  return {NamedTensor::BF16(weight.name, weight.shape, DrawWeight(weight, probe.seed))};
}

// Fills one shard after the other in the order of the forward pass, as save_pretrained does.
absl::Status WriteShards(const Probe& probe, const ModelShape& shape, const fs::path& model) {
  const std::vector<WeightShape> weights = WeightsOf(shape);
  int64_t parameters = 0;
  for (const WeightShape& weight : weights) parameters += weight.numel();
  OrderedJson map = OrderedJson::object();
  size_t bytes = 0, next = 0;
  int64_t done = 0;
  for (int shard = 0; shard < kShards; ++shard) {
    std::vector<NamedTensor> tensors;
    const bool is_last = shard + 1 == kShards;
    while (next < weights.size() && (is_last || done * kShards < parameters * (shard + 1))) {
      const WeightShape& weight = weights[next++];
      done += weight.numel();
      for (NamedTensor& tensor : Rounded(probe, shape, weight))
        tensors.push_back(std::move(tensor));
    }
    if (is_last) {  // buffers keep their type
      for (const WeightShape& buffer : BuffersOf(shape))
        tensors.push_back(InFp32(buffer, probe.seed));
    }
    for (const NamedTensor& tensor : tensors) {
      map[tensor.name] = ShardName(shard);
      bytes += tensor.bytes.size();
    }
    RETURN_IF_ERROR(
        WriteSafetensors(model / ShardName(shard), std::move(tensors), {{"format", "pt"}}));
  }
  const OrderedJson index = {
      {"metadata", {{"total_parameters", parameters}, {"total_size", bytes}}}, {"weight_map", map}};
  return WriteFile(model / kIndex, ToText(index));
}

// The names of the files that the index names.
absl::StatusOr<std::set<std::string>> ShardsOf(const fs::path& index) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(index));
  std::set<std::string> names;
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (map != json.end() && map->is_object()) {
    for (const auto& [tensor, file] : map->items()) {
      if (file.is_string()) names.insert(file.get<std::string>());
    }
  }
  if (names.empty())
    return absl::InvalidArgumentError(absl::StrCat(index.string(), ": no weight_map with files"));
  return names;
}

absl::StatusOr<StoredWeight> ReadPlain(const SafetensorsFile& file, const std::string& name) {
  ASSIGN_OR_RETURN(const TensorView* view, file.Find(name));
  if (view->type != TensorType::kF32 && view->type != TensorType::kBF16) {
    return absl::InvalidArgumentError(absl::StrCat(file.path().string(), ": tensor '", name,
                                                   "' is ", NameOf(view->type),
                                                   ", not F32 or BF16"));
  }
  ASSIGN_OR_RETURN(const std::vector<double> values, file.Doubles(name));
  return StoredWeight{view->shape, {values.begin(), values.end()}};
}

absl::StatusOr<StoredWeight> ReadMxfp4(const std::vector<SafetensorsFile>& files,
                                       const std::string& name) {
  ASSIGN_OR_RETURN(const SafetensorsFile* file, FileWith(files, name + kBlocks));
  ASSIGN_OR_RETURN(const TensorView* blocks, file->Find(name + kBlocks));
  ASSIGN_OR_RETURN(const SafetensorsFile* file_of_scales, FileWith(files, name + kScales));
  ASSIGN_OR_RETURN(const TensorView* scales, file_of_scales->Find(name + kScales));
  const auto error = [&](absl::string_view message) {
    return absl::InvalidArgumentError(
        absl::StrCat(file->path().string(), ": tensor '", name, kBlocks, "': ", message));
  };
  std::vector<int64_t> shape = scales->shape;
  shape.push_back(kMxfp4Block / 2);
  if (blocks->type != TensorType::kU8 || scales->type != TensorType::kU8 || shape.size() < 3 ||
      blocks->shape != shape)
    return error("it and its scales have not the shapes and the type of MXFP4");
  const absl::StatusOr<std::vector<float>> values = FromMxfp4(blocks->bytes, scales->bytes);
  if (!values.ok()) return error(values.status().message());
  shape.pop_back();
  shape.back() *= kMxfp4Block;
  return Transposed({shape, *values});
}

}  // namespace

absl::Status WriteCheckpoint(const Probe& probe, const ModelShape& shape, const fs::path& model) {
  return IsSharded(probe) ? WriteShards(probe, shape, model) : WriteSingle(probe, shape, model);
}

bool IsCheckpointComplete(const Probe& probe, const ModelShape& shape, const fs::path& model) {
  std::error_code error;
  if (fs::exists(model / kIndex, error) != IsSharded(probe)) return false;
  const absl::StatusOr<std::vector<SafetensorsFile>> files = OpenWeights(model);
  if (!files.ok()) return false;
  for (const WeightShape& buffer : BuffersOf(shape)) {
    if (!FileWith(*files, buffer.name).ok()) return false;
  }
  return IsSharded(probe) || !HasExtras(shape) || SafetensorsFile::Open(ExtrasOf(model)).ok();
}

absl::StatusOr<std::vector<SafetensorsFile>> OpenWeights(const fs::path& model) {
  std::set<std::string> names = {kSingle};
  std::error_code error;
  if (fs::exists(model / kIndex, error)) {
    ASSIGN_OR_RETURN(names, ShardsOf(model / kIndex));
  }
  std::vector<SafetensorsFile> files;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(model / name));
    files.push_back(std::move(file));
  }
  return files;
}

absl::StatusOr<const SafetensorsFile*> FileWith(const std::vector<SafetensorsFile>& files,
                                                const std::string& tensor) {
  for (const SafetensorsFile& file : files) {
    if (file.Has(tensor)) return &file;
  }
  return files.front().Find(tensor).status();
}

std::set<std::string> WeightNames(const std::vector<SafetensorsFile>& files) {
  std::set<std::string> names;
  for (const SafetensorsFile& file : files) {
    for (const auto& [name, view] : file.tensors()) {
      absl::string_view weight = name;
      if (!absl::ConsumeSuffix(&weight, kBlocks)) absl::ConsumeSuffix(&weight, kScales);
      names.emplace(weight);
    }
  }
  return names;
}

absl::StatusOr<StoredWeight> ReadWeight(const std::vector<SafetensorsFile>& files,
                                        const std::string& name) {
  const absl::StatusOr<const SafetensorsFile*> plain = FileWith(files, name);
  if (plain.ok()) return ReadPlain(**plain, name);
  return FileWith(files, name + kBlocks).ok() ? ReadMxfp4(files, name) : plain.status();
}

fs::path ExtrasOf(const fs::path& model) { return model / kExtras; }

}  // namespace bkm
