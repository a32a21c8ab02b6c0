// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/golden.h"

#include <ATen/ops/from_blob.h>

#include "absl/strings/str_cat.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/numerics/model_weights.h"
#include "harness/numerics/safetensors.h"

namespace bkm {
namespace {

std::string Key(size_t step, absl::string_view what) {
  return absl::StrCat("step", step, "/", what);
}

absl::StatusOr<at::Tensor> LoadWeight(const SafetensorsFile& file, const WeightShape& weight) {
  ASSIGN_OR_RETURN(const TensorView* view, file.Find(weight.name));
  if (view->type != TensorType::kF32 || view->shape != weight.shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", weight.name, "' is not F32 of the model's shape"));
  }
  // from_blob takes a pointer to non-const, but only the clone is ever written.
  void* data = const_cast<char*>(view->bytes.data());
  return at::from_blob(data, weight.shape, at::kFloat).clone();
}

std::string Numerics(const LoadedProbe& probe) { return ToLine(NumericsOf(probe.folder.probe)); }

}  // namespace

absl::StatusOr<LoadedProbe> LoadProbe(const std::filesystem::path& path) {
  LoadedProbe probe;
  ASSIGN_OR_RETURN(probe.folder, ReadProbeFolder(path));
  ASSIGN_OR_RETURN(probe.shape, ShapeOf(probe.folder.probe));
  ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(probe.folder.weights()));
  const std::vector<WeightShape> needed = WeightsOf(probe.shape);
  for (const WeightShape& weight : needed) {
    absl::StatusOr<at::Tensor> loaded = LoadWeight(file, weight);
    if (!loaded.ok()) return WithContext(loaded.status(), probe.folder.weights().string());
    probe.weights[weight.name] = *std::move(loaded);
  }
  if (file.tensors().size() != needed.size()) {
    return absl::InvalidArgumentError(absl::StrCat(probe.folder.weights().string(), ": it has ",
                                                   file.tensors().size(),
                                                   " tensors, but the model has ", needed.size()));
  }
  if (const std::vector<WeightShape> buffers = BuffersOf(probe.shape); !buffers.empty()) {
    ASSIGN_OR_RETURN(const SafetensorsFile extras, SafetensorsFile::Open(probe.folder.extras()));
    for (const WeightShape& buffer : buffers) {
      ASSIGN_OR_RETURN(probe.buffers[buffer.name], LoadWeight(extras, buffer));
    }
  }
  return probe;
}

std::vector<StepFacts> RunSteps(const LoadedProbe& probe, const Weights& weights,
                                const Arithmetic& arithmetic) {
  SftTrainer trainer(Decoder(probe.shape, arithmetic, probe.buffers), weights,
                     probe.folder.probe.optimizer, arithmetic);
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
