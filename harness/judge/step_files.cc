// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/step_files.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/judge/cell_files.h"

namespace bkm {
namespace {

// Of all steps of one cell.
constexpr int64_t kMostStepBytes = 512 << 20;

// A golden that is not finite would make every cell right or wrong.
absl::Status CheckFinite(const std::vector<double>& values, absl::string_view what) {
  if (std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); }))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " is not finite"));
}

absl::StatusOr<double> FloorNumber(const Json& step, const char* quantity, const char* measure) {
  const auto outer = step.find(quantity);
  if (outer != step.end() && outer->is_object()) {
    const auto inner = outer->find(measure);
    if (inner != outer->end() && inner->is_number() && inner->get<double>() >= 0)
      return inner->get<double>();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(".", quantity, ".", measure, ": a number of at least 0 is needed here"));
}

absl::StatusOr<TokenFloor> ReadTokenFloor(const Json& step, const char* quantity) {
  TokenFloor floor;
  ASSIGN_OR_RETURN(floor.mean, FloorNumber(step, quantity, "mean"));
  ASSIGN_OR_RETURN(floor.q99, FloorNumber(step, quantity, "q99"));
  ASSIGN_OR_RETURN(floor.max, FloorNumber(step, quantity, "max"));
  return floor;
}

absl::StatusOr<ReportFloor> ReadReportFloor(const Json& json) {
  if (!json.is_object()) return absl::InvalidArgumentError(": an object is needed here");
  ReportFloor floor;
  ASSIGN_OR_RETURN(floor.loss, FloorNumber(json, "loss", "abs"));
  ASSIGN_OR_RETURN(floor.log_probs, ReadTokenFloor(json, "log_probs"));
  if (json.contains("entropy")) {
    ASSIGN_OR_RETURN(floor.entropy, ReadTokenFloor(json, "entropy"));
  }
  return floor;
}

absl::StatusOr<FloorStep> ReadFloorStep(const Json& step) {
  FloorStep floor;
  ASSIGN_OR_RETURN(floor.reports, ReadReportFloor(step));
  ASSIGN_OR_RETURN(floor.total_norm, FloorNumber(step, "total_norm", "rel"));
  if (const auto fine = step.find("in_fp32"); fine != step.end()) {
    const absl::StatusOr<ReportFloor> in_fp32 = ReadReportFloor(*fine);
    if (!in_fp32.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(".in_fp32", std::string(in_fp32.status().message())));
    }
    floor.in_fp32 = *in_fp32;
    if (!fine->contains("entropy")) floor.in_fp32->entropy = floor.reports.entropy;
  }
  const auto gradients = step.find("grad");
  if (gradients == step.end() || !gradients->is_object())
    return absl::InvalidArgumentError(".grad: an object is needed here");
  for (const auto& [name, measures] : gradients->items()) {
    ASSIGN_OR_RETURN(floor.gradients[name], FloorNumber(*gradients, name.c_str(), "rel"));
    if (!measures.contains("of_total")) continue;
    ASSIGN_OR_RETURN(floor.shares[name], FloorNumber(*gradients, name.c_str(), "of_total"));
  }
  return floor;
}

absl::Status ReadGoldenTensors(const SafetensorsFile& file, const std::string& step,
                               GoldenStep& golden) {
  const std::string prefix = step + "grad/";
  for (const auto& [key, view] : file.tensors()) {
    if (!absl::StartsWith(key, prefix)) continue;
    const std::string name = key.substr(prefix.size());
    GoldenTensor& tensor = golden.tensors[name];
    ASSIGN_OR_RETURN(tensor.gradient, file.Doubles(key));
    ASSIGN_OR_RETURN(tensor.gradient_norm, file.Scalar(step + "grad_norm/" + name));
    RETURN_IF_ERROR(CheckFinite(tensor.gradient, key));
    RETURN_IF_ERROR(CheckFinite({tensor.gradient_norm}, "grad_norm of " + key));
  }
  return absl::OkStatus();
}

absl::StatusOr<GoldenStep> ReadGoldenStep(const SafetensorsFile& file, const std::string& step) {
  GoldenStep golden;
  ASSIGN_OR_RETURN(golden.log_probs, file.Doubles(step + "log_probs"));
  ASSIGN_OR_RETURN(golden.loss, file.Scalar(step + "loss"));
  ASSIGN_OR_RETURN(golden.total_norm, file.Scalar(step + "total_norm"));
  if (file.Has(step + "entropy")) {
    ASSIGN_OR_RETURN(golden.entropy, file.Doubles(step + "entropy"));
  }
  RETURN_IF_ERROR(CheckFinite(golden.log_probs, step + "log_probs"));
  RETURN_IF_ERROR(CheckFinite(golden.entropy, step + "entropy"));
  RETURN_IF_ERROR(CheckFinite({golden.loss, golden.total_norm}, step + "loss or total_norm"));
  RETURN_IF_ERROR(ReadGoldenTensors(file, step, golden));
  return golden;
}

// "predicted/<name>/log_probs".
absl::Status ReadPredicted(const SafetensorsFile& file, GoldenStep& golden) {
  for (const auto& [key, view] : file.tensors()) {
    absl::string_view name = key;
    if (!absl::ConsumePrefix(&name, "predicted/") || !absl::ConsumeSuffix(&name, "/log_probs"))
      continue;
    std::vector<double>& answer = golden.predicted[std::string(name)];
    ASSIGN_OR_RETURN(answer, file.Doubles(key));
    RETURN_IF_ERROR(CheckFinite(answer, key));
  }
  return absl::OkStatus();
}

}  // namespace

double NormOfAll(const GoldenStep& step) {
  double norm = 0;
  for (const auto& [name, tensor] : step.tensors) norm = std::hypot(norm, tensor.gradient_norm);
  return norm;
}

double NormOfAll(const StepTensors& step) {
  double norm = 0;
  for (const auto& [name, tensor] : step.tensors) norm = std::hypot(norm, tensor.norms[0]);
  return norm;
}

double ShareOf(double norm, double norm_of_all) { return norm == 0 ? 0 : norm / norm_of_all; }

double FloorStep::ShareFor(const std::string& name) const {
  const auto found = shares.find(name);
  return found == shares.end() ? 0 : found->second;
}

// Every place has a label and a weight, and the documents have all places.
absl::StatusOr<TrainedBatch> ReadTrainedBatch(const SafetensorsFile& file) {
  TrainedBatch batch;
  const auto key = [](absl::string_view name) { return absl::StrCat(kBatchPrefix, name); };
  ASSIGN_OR_RETURN(batch.input_ids, file.Ints(key("input_ids")));
  ASSIGN_OR_RETURN(batch.document_lengths, file.Ints(key("document_lengths")));
  ASSIGN_OR_RETURN(batch.labels, file.Ints(key("labels")));
  ASSIGN_OR_RETURN(batch.weights, file.Doubles(key("weights")));
  // Older runs have neither.
  if (file.Has(key("outside"))) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> read, file.Ints(key("outside")));
    if (read.size() == 1) batch.outside = read.front();
  }
  if (file.Has(key("residual"))) {
    ASSIGN_OR_RETURN(const std::vector<double> read, file.Doubles(key("residual")));
    if (read.size() == 1) batch.residual = read.front();
  }
  size_t places = 0;
  for (const int64_t length : batch.document_lengths) {
    if (length < 1 || static_cast<size_t>(length) > batch.input_ids.size())
      return absl::InvalidArgumentError(absl::StrCat(file.path().string(), ": ",
                                                     key("document_lengths"), ": a document of ",
                                                     length, " tokens"));
    places += length;
  }
  for (const size_t count : {places, batch.labels.size(), batch.weights.size()}) {
    if (count != batch.input_ids.size())
      return absl::InvalidArgumentError(
          absl::StrCat(file.path().string(), ": ", batch.input_ids.size(), " tokens, ",
                       batch.labels.size(), " labels, ", batch.weights.size(),
                       " weights and documents of ", places, " tokens together do not fit"));
  }
  return batch;
}

absl::StatusOr<StepTensors> ReadStepTensors(const SafetensorsFile& file) {
  StepTensors step;
  for (const auto& [key, view] : file.tensors()) {
    absl::string_view name = key;
    if (absl::StartsWith(key, kRelationPrefix)) continue;  // ReadStepRelations reads these
    if (absl::StartsWith(key, kBatchPrefix)) continue;
    ASSIGN_OR_RETURN(std::vector<double> values, file.Doubles(key));
    if (key == "log_probs") {
      step.log_probs = std::move(values);
    } else if (absl::ConsumePrefix(&name, "grad/")) {
      step.tensors[std::string(name)].gradient = std::move(values);
    } else if (absl::ConsumePrefix(&name, "before/")) {
      step.tensors[std::string(name)].before = std::move(values);
    } else if (absl::ConsumePrefix(&name, "after/")) {
      step.tensors[std::string(name)].after = std::move(values);
    } else if (absl::ConsumePrefix(&name, "norms/")) {
      if (values.size() != 3) {
        return absl::InvalidArgumentError(absl::StrCat(file.path().string(), ": ", key, " has ",
                                                       values.size(), " elements, not 3"));
      }
      std::copy(values.begin(), values.end(), step.tensors[std::string(name)].norms.begin());
    }
  }
  if (file.Has(absl::StrCat(kBatchPrefix, "input_ids"))) {
    ASSIGN_OR_RETURN(step.batch, ReadTrainedBatch(file));
  }
  return step;
}

bool MovedParameters(const StepTensors& step) {
  return std::any_of(step.tensors.begin(), step.tensors.end(),
                     [](const auto& named) { return named.second.before != named.second.after; });
}

absl::StatusOr<std::vector<double>> ReadForwardOnly(const std::string& name,
                                                    const ObservedForward& forward,
                                                    const std::filesystem::path& cell_dir) {
  ASSIGN_OR_RETURN(const SafetensorsFile file, OpenCellTensors(cell_dir, forward.tensors));
  if (!file.Has(name)) return std::vector<double>();
  return file.Doubles(name);
}

absl::StatusOr<std::vector<StepTensors>> ReadSteps(std::span<const ObservedStep> steps,
                                                   const std::filesystem::path& cell_dir) {
  std::vector<StepTensors> read;
  int64_t bytes = 0;
  for (const ObservedStep& step : steps) {
    if (step.tensors.empty()) {
      read.emplace_back();
      continue;
    }
    ASSIGN_OR_RETURN(const SafetensorsFile file, OpenCellTensors(cell_dir, step.tensors));
    bytes += file.bytes();
    if (bytes > kMostStepBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          cell_dir.string(), ": the files of its steps have more than ", kMostStepBytes, " bytes"));
    }
    ASSIGN_OR_RETURN(read.emplace_back(), ReadStepTensors(file));
  }
  return read;
}

absl::StatusOr<std::vector<GoldenStep>> ReadGoldenFile(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  std::vector<GoldenStep> steps;
  for (int k = 0; file.Has(absl::StrCat("step", k, "/log_probs")); ++k) {
    absl::StatusOr<GoldenStep> step = ReadGoldenStep(file, absl::StrCat("step", k, "/"));
    if (!step.ok()) return WithContext(step.status(), path.string());
    steps.push_back(*std::move(step));
  }
  if (steps.empty())
    return absl::InvalidArgumentError(absl::StrCat(path.string(), ": holds no step"));
  RETURN_IF_ERROR(WithContext(ReadPredicted(file, steps[0]), path.string()));
  return steps;
}

absl::StatusOr<std::vector<FloorStep>> ReadFloorFile(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(path));
  if (!json.is_object() || !json.contains("steps") || !json["steps"].is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), ": $.steps: a list is needed here"));
  }
  std::vector<FloorStep> steps;
  for (const Json& step : json["steps"]) {
    absl::StatusOr<FloorStep> floor = ReadFloorStep(step);
    if (!floor.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(path.string(), ": $.steps[", steps.size(), "]",
                                                     std::string(floor.status().message())));
    }
    steps.push_back(*std::move(floor));
  }
  return steps;
}

}  // namespace bkm
