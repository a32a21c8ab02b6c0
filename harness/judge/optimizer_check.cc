// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/optimizer_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/judge/case_file.h"
#include "harness/judge/claims.h"
#include "harness/judge/load_check.h"
#include "harness/numerics/error_measures.h"
#include "harness/numerics/optimizer_arithmetic.h"

namespace bkm {
namespace {

constexpr double kSettingTolerance = 1e-6;  // relative: a setting may pass through fp32
constexpr double kClipToleranceFp32 = 1e-3;
constexpr double kClipToleranceBf16 = 1.0 / 64;
// A total norm is summed in the type of the gradients. For all experts of a layer in one tensor of
// fp32, that was off by 3e-4 to 1.5e-3 on a CPU; the cell measures it after clipping, where the
// roundings are others than before it. A larger error is not believed: a subject could report it.
constexpr double kNormErrors = 2;
constexpr double kMostOfNormErrors = 1e-2;
// Relative to the update: moments, square root and division in fp32 cost 2^-24 each; the bias
// correction 1 - beta2^t loses three digits if computed in fp32.
constexpr double kUpdateToleranceFp32 = 1e-4;
constexpr double kUpdateToleranceBf16 = 1.0 / 32;
// Roundings of the parameter itself: of the factor 1 - lr * decay, of the product, and of the sum
// with the update. Right cells show up to 2.4 half ulps.
constexpr double kParameterRoundings = 3;
// Roundings of the first moment. They stay where its parts cancel each other: then they are large
// beside the update. A right cell showed 0.6 half ulps.
constexpr double kMomentRoundings = 4;

bool Near(double a, double b, double relative) {
  return std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b));
}

bool IsBf16(const SampledTensor& tensor) {
  return AreExact(tensor.before, kBf16FractionBits) && AreExact(tensor.after, kBf16FractionBits);
}

bool ParametersAreBf16(std::span<const StepTensors> steps) {
  return std::all_of(steps.begin(), steps.end(), [](const StepTensors& step) {
    return std::all_of(step.tensors.begin(), step.tensors.end(),
                       [](const auto& entry) { return IsBf16(entry.second); });
  });
}

// A tensor that never moves may have come from a file in bf16: that says nothing about its type.
bool MovesInBf16(const std::string& name, std::span<const StepTensors> steps) {
  const auto at = [&name](const StepTensors& step) -> const SampledTensor& {
    return step.tensors.at(name);
  };
  return std::all_of(steps.begin(), steps.end(),
                     [&](const StepTensors& step) { return IsBf16(at(step)); }) &&
         std::any_of(steps.begin(), steps.end(),
                     [&](const StepTensors& step) { return at(step).before != at(step).after; });
}

// Those of a parameter. CheckSettings wants the same in all groups, but for what does not decay.
OptimizerSettings SettingsOf(const OptimizerSettings& asked, const ObservedStep& step,
                             const std::string& parameter) {
  const ObservedParamGroup& group = step.param_groups.front();
  OptimizerSettings settings;
  settings.learning_rate = group.learning_rate;
  settings.beta1 = group.beta1;
  settings.beta2 = group.beta2;
  settings.epsilon = group.epsilon;
  settings.weight_decay =
      asked.undecayed.empty() ? group.weight_decay : asked.WeightDecayOf(parameter);
  return settings;
}

std::optional<CheckResult> CheckSettings(const OptimizerSettings& asked, const ObservedStep& step,
                                         size_t k) {
  struct Setting {
    const char* name;
    double asked;
    double ObservedParamGroup::*seen;
  };
  const Setting settings[] = {
      {"beta1", asked.beta1, &ObservedParamGroup::beta1},
      {"beta2", asked.beta2, &ObservedParamGroup::beta2},
      {"epsilon", asked.epsilon, &ObservedParamGroup::epsilon},
      {"weight decay", asked.weight_decay, &ObservedParamGroup::weight_decay}};
  // Which parameters decay is seen in their updates.
  const auto is_undecayed = [&](const Setting& setting, const ObservedParamGroup& group) {
    return setting.seen == &ObservedParamGroup::weight_decay && !asked.undecayed.empty() &&
           group.weight_decay == 0;
  };
  const double rate = LearningRateAt(asked, static_cast<int>(k));
  for (const ObservedParamGroup& group : step.param_groups) {
    if (Near(group.learning_rate, rate, kSettingTolerance)) continue;
    return CheckResult::Failed(Stage::kStep, reason::kLearningRateOff,
                               absl::StrFormat("in step %d the learning rate is %g, not %g", k + 1,
                                               group.learning_rate, rate));
  }
  for (const Setting& setting : settings) {
    const auto other =
        std::find_if(step.param_groups.begin(), step.param_groups.end(), [&](const auto& group) {
          return !Near(group.*setting.seen, setting.asked, kSettingTolerance) &&
                 !is_undecayed(setting, group);
        });
    if (other == step.param_groups.end()) continue;
    const std::string where =
        step.param_groups.size() == 1
            ? ""
            : absl::StrCat(" in group ", other - step.param_groups.begin() + 1, " of ",
                           step.param_groups.size(), " groups of parameters");
    return CheckResult::Failed(Stage::kStep, reason::kOverrideIgnored,
                               absl::StrFormat("the optimizer's %s is %g, not %g%s", setting.name,
                                               (*other).*setting.seen, setting.asked, where));
  }
  return std::nullopt;
}

double ClipTolerance(const ObservedStep& step, bool is_bf16) {
  if (is_bf16) return kClipToleranceBf16;
  const double error = kNormErrors * std::abs(step.norm_error.value_or(0));
  return kClipToleranceFp32 + (error <= kMostOfNormErrors ? error : 0);
}

std::optional<CheckResult> CheckClipping(const OptimizerSettings& asked, const ObservedStep& step,
                                         const StepTensors& tensors, size_t k, bool is_bf16,
                                         const std::string& unseen, Json& evidence) {
  std::vector<double> norms;
  for (const auto& [name, tensor] : tensors.tensors) norms.push_back(tensor.norms[0]);
  const double clipped = TotalNorm(norms);
  if (!step.grad_norm || !std::isfinite(*step.grad_norm) || !std::isfinite(clipped))
    return CheckResult::Unseen(
        Stage::kStep, absl::StrCat("in step ", k + 1, " the norm before clipping was not seen"));
  const double expected = *step.grad_norm * ClipCoefficient(*step.grad_norm, asked.clip_norm);
  const double tolerance = ClipTolerance(step, is_bf16);
  evidence["clipping"].push_back({{"reported", *step.grad_norm},
                                  {"clipped", clipped},
                                  {"expected", expected},
                                  {"tolerance", tolerance}});
  if (Near(clipped, expected, tolerance)) return std::nullopt;
  if (!unseen.empty() && clipped < expected) {
    return CheckResult::Unseen(Stage::kStep,
                               absl::StrCat("in step ", k + 1, " ", unseen,
                                            ": too little to tell how gradients were clipped"));
  }
  return CheckResult::Failed(
      Stage::kStep, reason::kClippingOff,
      absl::StrFormat("in step %d the gradient norm after clipping is %.6g, but clipping %.6g to "
                      "%g leaves %.6g",
                      k + 1, clipped, *step.grad_norm, asked.clip_norm, expected));
}

// Where AdamW takes sampled elements of a tensor in one step.
struct Step {
  std::vector<double> after;
  std::vector<double> uncancelled;  // the update if all gradients so far had one sign
};

// Follows one tensor from step to step.
class Follower {
 public:
  Step Next(const OptimizerSettings& settings, const SampledTensor& tensor) {
    Step step = {tensor.before, std::vector<double>(tensor.before.size())};
    AdamWStep(settings, tensor.gradient, moments_, step.after);
    std::vector<double> sizes = tensor.gradient;
    for (double& size : sizes) size = std::abs(size);
    AdamWStep(settings, sizes, moments_of_sizes_, step.uncancelled);  // of 0, nothing decays
    for (double& update : step.uncancelled) update = std::abs(update);
    return step;
  }

 private:
  AdamWMoments moments_;
  AdamWMoments moments_of_sizes_;
};

// The error of an observed update of element `i` in tolerances.
double Misfit(const SampledTensor& seen, const Step& expected, size_t i, bool is_bf16) {
  const int bits = is_bf16 ? kBf16FractionBits : kFp32FractionBits;
  const double before = seen.before[i], after = seen.after[i], right = expected.after[i];
  const double largest = std::max({std::abs(before), std::abs(right), std::abs(after)});
  const double tolerance =
      kParameterRoundings * HalfUlp(largest, bits) +
      kMomentRoundings * HalfUlp(expected.uncancelled[i], bits) +
      (is_bf16 ? kUpdateToleranceBf16 : kUpdateToleranceFp32) * std::abs(right - before);
  const double error = std::abs(after - right);
  return std::isfinite(error) ? error / tolerance : std::numeric_limits<double>::infinity();
}

// How well the settings explain one tensor over all steps.
struct UpdateFit {
  double misfit = 0;  // the largest
  size_t step = 0;
  double before = 0, expected = 0, after = 0;  // at the largest misfit
};

UpdateFit FitTensor(const OptimizerSettings& asked, const std::string& name,
                    std::span<const ObservedStep> reported, std::span<const StepTensors> steps,
                    bool is_bf16) {
  UpdateFit worst;
  Follower follower;
  for (size_t k = 0; k < steps.size(); ++k) {
    const SampledTensor& tensor = steps[k].tensors.at(name);
    const Step expected = follower.Next(SettingsOf(asked, reported[k], name), tensor);
    for (size_t i = 0; i < tensor.before.size(); ++i) {
      const double misfit = Misfit(tensor, expected, i, is_bf16);
      if (misfit > worst.misfit)
        worst = {misfit, k, tensor.before[i], expected.after[i], tensor.after[i]};
    }
  }
  return worst;
}

OptimizerFacts FactsOf(const std::string& name, const UpdateFit& fit) {
  OptimizerFacts::Update update = {.tensor = name,
                                   .step = fit.step,
                                   .before = fit.before,
                                   .expected = fit.expected,
                                   .after = fit.after};
  if (std::isfinite(fit.misfit)) update.tolerances = fit.misfit;
  return {.worst_update = update};
}

std::string SayUpdate(const std::string& name, const UpdateFit& fit) {
  return absl::StrFormat(
      "AdamW moves %s from %.8g to %.8g in step %d, but the cell moved it to %.8g", name,
      fit.before, fit.expected, fit.step + 1, fit.after);
}

CheckResult CheckUpdates(const OptimizerSettings& asked, std::span<const ObservedStep> reported,
                         std::span<const StepTensors> steps, bool is_bf16, Json evidence) {
  UpdateFit worst;
  std::string worst_name;
  std::vector<FailedPlace> places;
  for (const auto& [name, tensor] : steps.front().tensors) {
    const UpdateFit fit = FitTensor(asked, name, reported, steps, is_bf16);
    if (fit.misfit > 1)
      places.push_back(
          {absl::StrCat("step ", fit.step + 1, ", ", name), SayUpdate(name, fit),
           std::isfinite(fit.misfit) ? std::optional<double>(fit.misfit) : std::nullopt});
    if (worst_name.empty() || fit.misfit > worst.misfit) {
      worst = fit;
      worst_name = name;
    }
  }
  evidence.update(FactsJson(FactsOf(worst_name, worst)));
  if (worst.misfit <= 1) return CheckResult::Passed(Stage::kStep, std::move(evidence));
  if (!is_bf16 && MovesInBf16(worst_name, steps)) {
    return CheckResult::Failed(Stage::kStep, reason::kPrecisionIgnored,
                               absl::StrCat(worst_name, " is kept in bf16, not in fp32"),
                               std::move(evidence));
  }
  return CheckResult::Failed(Stage::kStep, reason::kUpdateOff, SayUpdate(worst_name, worst),
                             std::move(evidence))
      .At(std::move(places));
}

// Every step must have every tensor of the first step, complete, and each parameter must start
// where the step before left it.
std::optional<CheckResult> CheckSamples(std::span<const ObservedStep> reported,
                                        std::span<const StepTensors> steps) {
  for (size_t k = 0; k < steps.size(); ++k) {
    if (reported[k].param_groups.empty() ||
        reported[k].param_groups.size() != reported.front().param_groups.size()) {
      return CheckResult::Unseen(
          Stage::kStep, absl::StrCat("in step ", k + 1, " the optimizer's settings were not seen"));
    }
    for (const auto& [name, first] : steps.front().tensors) {
      const auto found = steps[k].tensors.find(name);
      const size_t size = first.before.size();
      if (found == steps[k].tensors.end() || size == 0 || found->second.before.size() != size ||
          found->second.after.size() != size || found->second.gradient.size() != size) {
        return CheckResult::Unseen(Stage::kStep, absl::StrCat("in step ", k + 1, " the update of ",
                                                              name, " was not seen"));
      }
      if (k > 0 && found->second.before != steps[k - 1].tensors.at(name).after) {
        return CheckResult::Failed(
            Stage::kStep, reason::kUpdateOff,
            absl::StrCat(name, " changed between steps ", k, " and ", k + 1));
      }
    }
  }
  return std::nullopt;
}

}  // namespace

void Describe(Fields& fields, OptimizerFacts::Update& update) {
  fields.Field("tensor", update.tensor);
  fields.Field("step", update.step);
  fields.Field("before", update.before);
  fields.Field("expected", update.expected);
  fields.Field("after", update.after);
  fields.Field("tolerances", update.tolerances);
}

void Describe(Fields& fields, OptimizerFacts& facts) {
  fields.Field("worst_update", facts.worst_update);
}

CheckResult CheckOptimizer(const OptimizerSettings& asked, std::span<const ObservedStep> reported,
                           std::span<const StepTensors> tensors, const std::string& parameter_type,
                           const std::string& unseen) {
  if (reported.empty() || reported.size() != tensors.size() || tensors.front().tensors.empty())
    return CheckResult::Unseen(Stage::kStep, "no optimizer step was seen");
  if (std::optional<CheckResult> stop = CheckSamples(reported, tensors)) return *stop;
  const bool is_bf16 = ParametersAreBf16(tensors);
  Json evidence = {{"parameters", is_bf16 ? "bf16" : "fp32"},
                   {"optimizer", reported.front().optimizer_class},
                   {"clipping", Json::array()}};
  const auto finish = [&](CheckResult result) {
    result.facts = evidence;
    return result;
  };
  if (const std::string type = is_bf16 ? "bf16" : "fp32"; type != parameter_type)
    return finish(CheckResult::Failed(
        Stage::kStep, reason::kPrecisionIgnored,
        absl::StrCat("the parameters are kept in ", type, ", not in ", parameter_type)));
  for (size_t k = 0; k < reported.size(); ++k) {
    if (auto stop = CheckSettings(asked, reported[k], k)) return finish(*std::move(stop));
    if (auto stop = CheckClipping(asked, reported[k], tensors[k], k, is_bf16, unseen, evidence))
      return finish(*std::move(stop));
  }
  return CheckUpdates(asked, reported, tensors, is_bf16, std::move(evidence));
}

std::map<std::string, ExpectedUpdate> ExpectedUpdates(const OptimizerSettings& asked,
                                                      std::span<const ObservedStep> reported,
                                                      std::span<const StepTensors> steps,
                                                      size_t step) {
  std::map<std::string, ExpectedUpdate> updates;
  if (step >= steps.size() || step >= reported.size()) return updates;
  const bool is_bf16 = ParametersAreBf16(steps);
  for (const auto& [name, last] : steps[step].tensors) {
    Follower follower;
    Step expected;
    for (size_t k = 0; k <= step; ++k) {
      const auto found = steps[k].tensors.find(name);
      expected = Step();
      if (found == steps[k].tensors.end() || reported[k].param_groups.empty()) break;
      const SampledTensor& tensor = found->second;
      if (tensor.gradient.size() != last.after.size() || tensor.before.size() != last.after.size())
        break;
      expected = follower.Next(SettingsOf(asked, reported[k], name), tensor);
    }
    if (expected.after.size() != last.after.size() || expected.after.empty()) continue;
    ExpectedUpdate update;
    for (size_t i = 0; i < last.after.size(); ++i)
      update.is_right.push_back(Misfit(last, expected, i, is_bf16) <= 1);
    update.expected = std::move(expected.after);
    updates.emplace(name, std::move(update));
  }
  return updates;
}

namespace {

// fp32 master weights, unless verl's engine option asks for others.
std::string ParameterTypeOf(const Probe& probe) {
  const auto option = probe.engine_options.find("model_dtype");
  if (option == probe.engine_options.end()) return "fp32";
  return absl::StrContains(option->second, "bf") ? "bf16" : "fp32";
}

// Which of the model's gradients the samples lack, as a clause; empty if none.
std::string UnseenGradients(const CaseFile& file, const std::vector<StepTensors>& steps) {
  const auto& weights = file.reference().weights;
  if (!weights.ok() || steps.empty()) return "";
  if (const size_t seen = steps.front().tensors.size(); seen < weights->size())
    return absl::StrCat("the gradients of ", seen, " of ", weights->size(), " tensors were seen");
  if (ElementsBeyond(file.seen().held, *weights) > 0)
    return "the gradients of parameters that the file lacks were not seen";
  return "";
}

}  // namespace

CheckResult CheckOptimizerOf(const CaseFile& file, std::span<const ObservedStep> reported,
                             const std::vector<StepTensors>& steps) {
  return CheckOptimizer(file.probe().optimizer, reported, steps, ParameterTypeOf(file.probe()),
                        UnseenGradients(file, steps));
}

namespace {

bool HasSteps(const CaseFile& file) { return file.has_finished && file.steps.ok(); }

CheckResult CheckOptimizerOfSteps(const CaseFile& file) {
  return CheckOptimizerOf(file, file.seen().steps, *file.steps);
}

}  // namespace

extern const Claim kOptimizerClaim = {
    .name = "optimizer",
    .rung = Stage::kStep,
    .says = "AdamW with the asked settings and schedule, after clipping",
    .witness =
        "the learning rate and the settings of every group of parameters, the norm before "
        "and after clipping, sampled parameters before and after each step",
    .cannot_see = "how parameters are grouped, if each group has the asked settings",
    .applies = HasSteps,
    .check = CheckOptimizerOfSteps,
};

}  // namespace bkm
