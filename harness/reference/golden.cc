// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/golden.h"

#include <ATen/ops/from_blob.h>

#include "absl/strings/str_cat.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/numerics/model_checkpoint.h"
#include "harness/numerics/model_weights.h"
#include "harness/numerics/safetensors.h"

namespace bkm {
namespace {

std::string Key(size_t step, absl::string_view what) {
  return absl::StrCat("step", step, "/", what);
}

absl::Status LoadWeights(const std::vector<SafetensorsFile>& files,
                         const std::vector<WeightShape>& needed, Weights& into) {
  for (const WeightShape& weight : needed) {
    ASSIGN_OR_RETURN(StoredWeight stored, ReadWeight(files, weight.name));
    if (stored.shape != weight.shape) {
      return absl::InvalidArgumentError(absl::StrCat(files.front().path().parent_path().string(),
                                                     ": weight '", weight.name,
                                                     "' has not the model's shape"));
    }
    into[weight.name] = at::from_blob(stored.values.data(), weight.shape, at::kFloat).clone();
  }
  return absl::OkStatus();
}

std::string Numerics(const LoadedProbe& probe) { return ToLine(NumericsOf(probe.folder.probe)); }

}  // namespace

absl::StatusOr<LoadedProbe> LoadProbe(const std::filesystem::path& path) {
  LoadedProbe probe;
  ASSIGN_OR_RETURN(probe.folder, ReadProbeFolder(path));
  ASSIGN_OR_RETURN(probe.shape, ShapeOf(probe.folder.probe));
  ASSIGN_OR_RETURN(const std::vector<SafetensorsFile> files, OpenWeights(probe.folder.model()));
  const std::vector<WeightShape> weights = WeightsOf(probe.shape);
  const std::vector<WeightShape> buffers = BuffersOf(probe.shape);
  RETURN_IF_ERROR(LoadWeights(files, weights, probe.weights));
  RETURN_IF_ERROR(LoadWeights(files, buffers, probe.buffers));
  if (const size_t found = WeightNames(files).size(); found != weights.size() + buffers.size()) {
    return absl::InvalidArgumentError(absl::StrCat(probe.folder.model().string(), ": it has ",
                                                   found, " tensors, but the model has ",
                                                   weights.size() + buffers.size()));
  }
  return probe;
}

LogitsUse UseOf(const LoadedProbe& probe) {
  const Probe& asked = probe.folder.probe;
  return {asked.temperature, asked.entropy, asked.ppo};
}

std::vector<StepFacts> RunSteps(const LoadedProbe& probe, const Weights& weights,
                                const Arithmetic& arithmetic) {
  SftTrainer trainer(Decoder(probe.shape, arithmetic, probe.buffers), weights,
                     probe.folder.probe.optimizer, arithmetic, UseOf(probe));
  std::vector<StepFacts> steps;
  for (const PackedBatch& batch : probe.folder.steps) {
    if (!steps.empty()) trainer.Update();  // the result of the last update is unused
    steps.push_back(trainer.Observe(batch, probe.folder.places));
  }
  return steps;
}

absl::Status WriteGolden(const LoadedProbe& probe, const std::vector<StepFacts>& steps,
                         const std::map<std::string, std::vector<double>>& predicted,
                         const std::filesystem::path& path) {
  std::vector<NamedTensor> tensors;
  const auto add = [&](std::string name, std::span<const double> values) {
    tensors.push_back(
        NamedTensor::F64(std::move(name), {static_cast<int64_t>(values.size())}, values));
  };
  for (const auto& [fault, log_probs] : predicted) {
    add(absl::StrCat("predicted/", fault, "/log_probs"), log_probs);
  }
  for (size_t k = 0; k < steps.size(); ++k) {
    const StepFacts& step = steps[k];
    add(Key(k, "log_probs"), step.log_probs);
    if (!step.entropy.empty()) add(Key(k, "entropy"), step.entropy);
    add(Key(k, "loss"), {&step.loss, 1});
    add(Key(k, "total_norm"), {&step.total_norm, 1});
    for (const auto& [name, weight] : step.weights) {
      add(Key(k, absl::StrCat("grad/", name)), weight.gradient);
      add(Key(k, absl::StrCat("grad_norm/", name)), {&weight.gradient_norm, 1});
      add(Key(k, absl::StrCat("param_norm/", name)), {&weight.parameter_norm, 1});
    }
  }
  return WriteSafetensors(path, std::move(tensors), {{"numerics", Numerics(probe)}});
}

absl::StatusOr<std::vector<StepFacts>> ReadGolden(const LoadedProbe& probe,
                                                  const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  const auto numerics = file.metadata().find("numerics");
  if (numerics == file.metadata().end() || numerics->second != Numerics(probe)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path.string(), ": is the golden of another probe than ", probe.folder.path.string()));
  }
  std::vector<StepFacts> steps(probe.folder.steps.size());
  for (size_t k = 0; k < steps.size(); ++k) {
    StepFacts& step = steps[k];
    ASSIGN_OR_RETURN(step.log_probs, file.Doubles(Key(k, "log_probs")));
    if (probe.folder.probe.entropy) {
      ASSIGN_OR_RETURN(step.entropy, file.Doubles(Key(k, "entropy")));
    }
    ASSIGN_OR_RETURN(step.loss, file.Scalar(Key(k, "loss")));
    ASSIGN_OR_RETURN(step.total_norm, file.Scalar(Key(k, "total_norm")));
    for (const auto& [name, tensor] : probe.weights) {
      WeightFacts& weight = step.weights[name];
      ASSIGN_OR_RETURN(weight.gradient, file.Doubles(Key(k, absl::StrCat("grad/", name))));
      ASSIGN_OR_RETURN(weight.gradient_norm, file.Scalar(Key(k, absl::StrCat("grad_norm/", name))));
      ASSIGN_OR_RETURN(weight.parameter_norm,
                       file.Scalar(Key(k, absl::StrCat("param_norm/", name))));
    }
  }
  return steps;
}

}  // namespace bkm
