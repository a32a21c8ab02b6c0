// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/export_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "harness/base/status_macros.h"
#include "harness/judge/case_file.h"
#include "harness/judge/cell_files.h"
#include "harness/judge/claims.h"
#include "harness/judge/numbers_check.h"
#include "harness/numerics/error_measures.h"

namespace bkm {
namespace {

constexpr char kHead[] = "lm_head.weight";
constexpr char kEmbedding[] = "model.embed_tokens.weight";
constexpr double kBf16Rounding = 1.0 / 256;
constexpr double kNormReduction64 = 1e-9;  // of a norm that is summed in fp64

CheckResult Failed(const char* reason, std::string message) {
  return CheckResult::Failed(Stage::kExport, reason, std::move(message));
}

double RoundingOf(const ObservedWeight& weight) {
  return weight.dtype == "bfloat16" ? kBf16Rounding : 0;
}

// A tied head under its own name.
bool IsTiedHead(const std::string& name, const ExportInput& input) {
  const auto embedding = input.seen.weights.find(kEmbedding);
  return name == kHead && !input.file.contains(kHead) && embedding != input.seen.weights.end() &&
         input.seen.weights.at(name).norm == embedding->second.norm;
}

std::optional<CheckResult> CheckNames(const ExportInput& input) {
  std::vector<std::string> lacking, beyond;
  for (const auto& [name, tensor] : input.file) {
    const auto seen = input.seen.weights.find(name);
    if (seen == input.seen.weights.end()) {
      lacking.push_back(name);
      continue;
    }
    int64_t numel = 1;
    for (int64_t size : seen->second.shape) numel *= size;
    if (numel != tensor.numel)
      return Failed(reason::kExportNames, absl::StrCat("the exported ", name, " has ", numel,
                                                       " elements, not ", tensor.numel));
  }
  for (const auto& [name, weight] : input.seen.weights) {
    if (!input.file.contains(name) && !IsTiedHead(name, input)) beyond.push_back(name);
    if (weight.dtype != "float32" && weight.dtype != "bfloat16")
      return Failed(reason::kExportNames, absl::StrCat("the exported ", name, " is ", weight.dtype,
                                                       ", not float32 or bfloat16"));
  }
  if (!lacking.empty())
    return Failed(reason::kExportNames,
                  absl::StrCat("the export lacks ", lacking.size(), " of ", input.file.size(),
                               " tensors of a Hugging Face folder, first ", lacking.front()));
  if (!beyond.empty())
    return Failed(reason::kExportNames,
                  absl::StrCat("the export has ", beyond.size(),
                               " names that a Hugging Face folder lacks, first ", beyond.front()));
  return std::nullopt;
}

bool Agrees(double seen, double expected, double rounding) {
  return std::abs(seen - expected) <= rounding * std::abs(expected);
}

std::optional<CheckResult> CheckValues(const ExportInput& input) {
  std::vector<FailedPlace> places;
  for (const auto& [name, tensor] : input.trained.tensors) {
    const auto weight = input.seen.weights.find(name);
    const auto sample = input.tensors.samples.find(name);
    if (weight == input.seen.weights.end()) continue;
    if (sample == input.tensors.samples.end() || sample->second.size() != tensor.after.size())
      return CheckResult::Unseen(
          Stage::kExport, absl::StrCat("the values of the exported ", name, " were not seen"));
    const double rounding = RoundingOf(weight->second);
    std::optional<FailedPlace> worst;
    const auto add = [&](double seen, double expected, double allowed, std::string what) {
      // In roundings of bf16, whatever the type: what is exported in fp32 must be the same.
      const double size = std::abs(seen - expected) / std::max(std::abs(expected), 1e-30) /
                          std::max(allowed, kBf16Rounding);
      if (!worst || size > worst->size.value_or(0) || !std::isfinite(size))
        worst = FailedPlace{name, std::move(what),
                            std::isfinite(size) ? std::optional<double>(size) : std::nullopt};
    };
    for (size_t i = 0; i < tensor.after.size(); ++i) {
      if (Agrees(sample->second[i], tensor.after[i], rounding)) continue;
      add(sample->second[i], tensor.after[i], rounding,
          absl::StrFormat("the exported %s has %g where the engine holds %g after step 1", name,
                          sample->second[i], tensor.after[i]));
    }
    if (!Agrees(weight->second.norm, tensor.norms[2], std::max(rounding, kNormReduction64)))
      add(weight->second.norm, tensor.norms[2], rounding,
          absl::StrFormat("the exported %s has the norm %g where the engine holds %g", name,
                          weight->second.norm, tensor.norms[2]));
    if (worst) places.push_back(*std::move(worst));
  }
  if (places.empty()) return std::nullopt;
  CheckResult failed = Failed(reason::kExportOff, "").At(std::move(places));
  failed.message = failed.places.front().what;
  if (failed.places.size() > 1)
    absl::StrAppend(&failed.message, "; and ", failed.places.size() - 1, " other tensors");
  return failed;
}

std::optional<CheckResult> CheckLoading(const ExportInput& input) {
  const auto fails = [](const std::vector<std::string>& names, const char* what) {
    return Failed(reason::kExportNames,
                  absl::StrCat("transformers finds ", names.size(), what, names.front()));
  };
  if (!input.seen.missing.empty())
    return fails(input.seen.missing, " weights missing in the export, first ");
  std::vector<std::string> unexpected = input.seen.unexpected;
  std::erase(unexpected, kHead);  // CheckNames looked at it
  if (!unexpected.empty())
    return fails(unexpected, " weights in the export that it does not know, first ");
  return std::nullopt;
}

CheckResult CheckLogProbs(const ExportInput& input) {
  const std::vector<double>& log_probs = input.tensors.log_probs;
  if (log_probs.size() != input.golden.log_probs.size())
    return CheckResult::Unseen(Stage::kExport,
                               "no log-probs of the exported weights were seen for each token");
  if (input.floor == nullptr)
    return CheckResult::Unseen(Stage::kExport,
                               "the export is bf16 and there is no floor for it: ask for precision "
                               "bf16");
  std::vector<double> observed, expected;
  for (int64_t position : input.batch.JudgedPositions()) {
    observed.push_back(log_probs[position]);
    expected.push_back(input.golden.log_probs[position]);
  }
  const absl::StatusOr<std::vector<double>> errors = AbsoluteErrors(observed, expected);
  if (!errors.ok()) return CheckResult::Unreadable(Stage::kExport, errors.status());
  // Whatever the training's precision: transformers computes in fp32.
  const TokenFloor& floor = input.floor->Reports(/*are_in_fp32=*/true).log_probs;
  const struct {
    const char* key;
    double error, floor, allowed;
  } measures[] = {{"log_probs_mean", Mean(*errors), floor.mean, input.average_multiple},
                  {"log_probs_q99", Quantile(*errors, 0.99), floor.q99, kFloorMultiple},
                  {"log_probs_max", *std::max_element(errors->begin(), errors->end()), floor.max,
                   kFloorMultiple}};
  CheckResult result = CheckResult::Passed(Stage::kExport);
  for (const auto& measure : measures) {
    const double multiple = InFloors(measure.error, measure.floor);
    result.facts[measure.key] = {{"error", measure.error}, {"floor", measure.floor}};
    if (std::isfinite(multiple)) result.facts[measure.key]["multiple"] = multiple;
    if (multiple <= measure.allowed || result.outcome == ClaimOutcome::kFailed) continue;
    result.outcome = ClaimOutcome::kFailed;
    result.reason = reason::kExportOff;
    result.message = absl::StrFormat(
        "with the exported weights, transformers' log-probs of step 2 are off by %.3g (%s), %.1f "
        "times the floor (%.0f allowed)",
        measure.error, measure.key, multiple, measure.allowed);
  }
  return result;
}

}  // namespace

absl::StatusOr<ExportTensors> ReadExport(const ObservedExport& exported,
                                         const std::filesystem::path& cell_dir) {
  ASSIGN_OR_RETURN(const SafetensorsFile file, OpenCellTensors(cell_dir, exported.tensors));
  ExportTensors read;
  for (const auto& [key, view] : file.tensors()) {
    absl::string_view name = key;
    ASSIGN_OR_RETURN(std::vector<double> values, file.Doubles(key));
    if (key == "log_probs") {
      read.log_probs = std::move(values);
    } else if (absl::ConsumePrefix(&name, "sample/")) {
      read.samples[std::string(name)] = std::move(values);
    }
  }
  return read;
}

std::string PrecisionOf(const ObservedExport& exported) {
  std::string precision = "fp32";
  for (const auto& [name, weight] : exported.weights) {
    if (weight.dtype == "bfloat16") {
      precision = "bf16";
    } else if (weight.dtype != "float32") {
      return "";
    }
  }
  return precision;
}

CheckResult CheckExport(const ExportInput& input) {
  Json evidence = {{"tensors", input.seen.weights.size()}, {"precision", PrecisionOf(input.seen)}};
  const auto with_evidence = [&evidence](CheckResult result) {
    result.facts.update(evidence);
    return result;
  };
  if (!MovedParameters(input.trained))
    return with_evidence(CheckResult::Unseen(
        Stage::kExport, "step 1 changed no parameter, so the initial weights would pass, too"));
  if (auto stop = CheckNames(input)) return with_evidence(*std::move(stop));
  if (auto stop = CheckValues(input)) return with_evidence(*std::move(stop));
  if (auto stop = CheckLoading(input)) return with_evidence(*std::move(stop));
  return with_evidence(CheckLogProbs(input));
}

namespace {

CheckResult CheckExportOf(const CaseFile& file) {
  const ReferenceData& reference = file.reference();
  const std::vector<StepTensors>& steps = *file.steps;
  for (const absl::Status& status :
       {reference.folder.status(), reference.weights.status(), reference.buffers.status()}) {
    if (!status.ok()) return CheckResult::Unreadable(Stage::kExport, status);
  }
  if (!reference.golden.ok()) return WithoutReference(Stage::kExport, reference.golden.status());
  std::map<std::string, ObservedTensor> weights = *reference.weights;
  weights.insert(reference.buffers->begin(), reference.buffers->end());
  if (!file.seen().exported || steps.empty() || reference.golden->size() < 2)
    return CheckResult::Unseen(Stage::kExport, "no exported weights were seen");
  const ObservedExport& exported = *file.seen().exported;
  const absl::StatusOr<ExportTensors> tensors = ReadExport(exported, file.input.cell_dir);
  if (!tensors.ok()) return CheckResult::Unreadable(Stage::kExport, tensors.status());
  // Training in bf16 has a wider floor than rounding an fp32 model's weights has.
  const bool trained_in_bf16 = PrecisionOf(file.seen(), file.probe()) == "bf16";
  const std::string precision = trained_in_bf16 ? "bf16" : PrecisionOf(exported);
  const auto floor = reference.floors.find(precision);
  const bool has_floor = floor != reference.floors.end() && floor->second.ok();
  return CheckExport({.seen = exported,
                      .tensors = *tensors,
                      .file = weights,
                      .trained = steps.front(),
                      .batch = reference.folder->steps[1],
                      .golden = (*reference.golden)[1],
                      .floor = has_floor ? &(*floor->second)[1] : nullptr,
                      .average_multiple = AverageMultiple(precision)});
}

bool AsksForExport(const CaseFile& file) {
  return file.has_finished && file.steps.ok() && file.probe().export_weights && file.has_exported;
}

}  // namespace

extern const Claim kExportClaim = {
    .name = "export",
    .rung = Stage::kExport,
    .asked_by = "export_weights",
    .says = "others get the weights that were trained",
    .witness =
        "after step 1, what the engine gives to an inference engine (verl's "
        "`get_per_tensor_param`), or what `save_pretrained` writes: names, types, sizes; "
        "values at sampled places and norms, against those that the engine holds; the "
        "log-probs of step 2 by transformers, which loads the export, computes in fp32 and "
        "attends eagerly to one document at a time; they have the floor of reports in fp32",
    .cannot_see = "values of buffers; a rounding to bf16 hides smaller errors",
    .applies = AsksForExport,
    .check = CheckExportOf,
};

}  // namespace bkm
