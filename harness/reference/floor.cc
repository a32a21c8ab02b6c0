// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/floor.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/frexp.h>
#include <ATen/ops/ldexp.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rand.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/status_macros.h"
#include "harness/numerics/error_measures.h"
#include "harness/reference/bf16_products.h"

namespace bkm {
namespace {

using at::Tensor;

int FractionBits(at::ScalarType type) {
  return type == at::kBFloat16 ? kBf16FractionBits : kFp32FractionBits;
}

Json Spread(const std::vector<double>& errors) {
  return {{"mean", Mean(errors)},
          {"q99", Quantile(errors, 0.99)},
          {"max", *std::max_element(errors.begin(), errors.end())}};
}

// The loss is a mean over tokens, whose errors may cancel each other in a run by luck. So it gets
// at least two standard errors of a mean of such errors.
double LossDistance(double seen, const std::vector<double>& errors) {
  double squares = 0;
  for (const double error : errors) squares += error * error;
  return std::max(seen, 2 * std::sqrt(squares) / static_cast<double>(errors.size()));
}

// Half the gap between neighbouring numbers of the type in which log-probs, loss and entropy are
// reported, measured like the errors.
Json LeastOfReports(const PackedBatch& batch, const StepFacts& golden, int log_prob_bits) {
  std::vector<double> half_ulps;
  for (const int64_t t : batch.JudgedPositions()) {
    half_ulps.push_back(HalfUlp(golden.log_probs[t], log_prob_bits));
  }
  Json distance = {{"loss", {{"abs", HalfUlp(golden.loss, log_prob_bits)}}},
                   {"log_probs", Spread(half_ulps)}};
  if (golden.entropy.empty()) return distance;
  half_ulps.clear();
  for (const double entropy : golden.entropy) half_ulps.push_back(HalfUlp(entropy, log_prob_bits));
  distance["entropy"] = Spread(half_ulps);
  return distance;
}

// The same for all that is reported.
Json LeastDistance(const PackedBatch& batch, const StepFacts& golden, int log_prob_bits) {
  // Gradients and their norm are reported in fp32 at every precision.
  const double relative = HalfUlp(1.0, kFp32FractionBits);
  Json grad = Json::object();
  for (const auto& [name, weight] : golden.weights) {
    grad[name] = {
        {"rel", relative}, {"cosine_gap", relative * relative / 2}, {"of_total", relative}};
  }
  Json distance = LeastOfReports(batch, golden, log_prob_bits);
  distance["total_norm"] = {{"rel", relative}};
  distance["grad"] = grad;
  return distance;
}

// The element-wise maximum; both have the same keys.
void TakeLargest(const Json& from, Json& into) {
  for (auto& [key, value] : into.items()) {
    if (value.is_object()) {
      TakeLargest(from.at(key), value);
    } else {
      value = std::max(value.get<double>(), from.at(key).get<double>());
    }
  }
}

// A scalar's error is one draw and may be almost zero at one step by luck, so each step gets the
// largest of all steps. The same holds for the largest token's error: near ties and routing flips
// are rare.
void ShareScalarsAmongSteps(std::vector<Json>& steps) {
  for (const char* scalar : {"loss", "total_norm"}) {
    if (!steps[0].contains(scalar)) continue;
    Json largest = steps[0][scalar];
    for (const Json& step : steps) TakeLargest(step[scalar], largest);
    for (Json& step : steps) step[scalar] = largest;
  }
  for (const char* of_tokens : {"log_probs", "entropy"}) {
    if (!steps[0].contains(of_tokens)) continue;
    double largest = 0;
    for (const Json& step : steps)
      largest = std::max(largest, step[of_tokens]["max"].get<double>());
    for (Json& step : steps) step[of_tokens]["max"] = largest;
  }
}

// "model.layers.1.mlp.experts.17.up_proj.weight" without its number.
std::string ExpertFamily(const std::string& name) {
  static const std::string& kMark = *new std::string(".experts.");
  const size_t begin = name.find(kMark);
  if (begin == std::string::npos) return name;
  const size_t number = begin + kMark.size();
  const size_t end = name.find_first_not_of("0123456789", number);
  return name.substr(0, number) + name.substr(end == std::string::npos ? name.size() : end);
}

absl::Status CheckFinite(const Json& distance, const Arithmetic& way) {
  const Json flat = distance.flatten();
  for (const auto& [key, value] : flat.items()) {
    if (!std::isfinite(value.get<double>())) {
      return absl::InternalError(absl::StrCat("the floor run '", way.name, "' gave no finite ", key,
                                              ": this machine or probe cannot be used for it"));
    }
  }
  return absl::OkStatus();
}

// The norm of all gradients together, after clipping.
double NormOfAll(const StepFacts& step) {
  double norm = 0;
  for (const auto& [name, weight] : step.weights) norm = std::hypot(norm, weight.gradient_norm);
  return norm;
}

absl::StatusOr<Json> GradientDistance(const WeightFacts& run, const WeightFacts& golden,
                                      double norm_of_all) {
  // No error is relative to nothing.
  if (golden.gradient_norm == 0)
    return Json{{"rel", 0}, {"cosine_gap", 0}, {"of_total", run.gradient_norm / norm_of_all}};
  ASSIGN_OR_RETURN(const double rel, RelativeNormError(run.gradient, golden.gradient));
  ASSIGN_OR_RETURN(const double cosine_gap, CosineGap(run.gradient, golden.gradient));
  return Json{{"rel", rel},
              {"cosine_gap", cosine_gap},
              {"of_total", rel * golden.gradient_norm / norm_of_all}};
}

}  // namespace

void ShareAmongExperts(Json& step) {
  std::map<std::string, Json> largest;
  for (const auto& [name, distance] : step["grad"].items()) {
    const auto [found, first] = largest.emplace(ExpertFamily(name), distance);
    if (!first) TakeLargest(distance, found->second);
  }
  for (auto& [name, distance] : step["grad"].items()) distance = largest.at(ExpertFamily(name));
}

absl::StatusOr<std::vector<Arithmetic>> WaysOf(absl::string_view precision) {
  constexpr auto kFP32 = at::kFloat;
  constexpr auto kBF16 = at::kBFloat16;
  if (precision == "fp32")
    return std::vector<Arithmetic>{{"fp32", kFP32, kFP32, kFP32, kFP32, kFP32}};
  if (precision == "bf16") {
    return std::vector<Arithmetic>{
        // torch.autocast: products in bf16, the rest and the parameters in fp32.
        {"autocast", kFP32, kFP32, kFP32, kBF16, kFP32},
        // FSDP2 mixed precision: forward and backward see bf16 parameters; fp32 at the optimizer.
        {"bf16-parameters", kFP32, kBF16, kBF16, kBF16, kFP32},
        // Log-softmax in bf16 of bf16 logits, as in engines that gather log-probs themselves.
        {"bf16-log-probs", kFP32, kFP32, kFP32, kBF16, kBF16},
    };
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown precision '", precision, "'", DidYouMean(precision, {"bf16", "fp32"})));
}

Weights Dithered(const Weights& weights, const Arithmetic& way, int dither) {
  if (dither == 0) return weights;
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(dither);
  Weights result;
  for (const auto& [name, weight] : weights) {
    const bool is_multiplied = weight.dim() > 1;
    if (!is_multiplied && way.parameters != way.matmul) {
      result[name] = weight;
      continue;
    }
    // w = mantissa * 2^exponent with mantissa in [1/2, 1): the ulp is 2^(exponent - 1 - bits).
    const Tensor exponent = std::get<1>(at::frexp(weight));
    const Tensor ulp = at::ldexp(at::ones_like(weight), exponent - 1 - FractionBits(way.matmul));
    const Tensor noise = at::rand(weight.sizes(), generator, weight.options()) - 0.5;
    result[name] = weight.to(at::kDouble) + (ulp * noise).to(at::kDouble);
  }
  return result;
}

absl::StatusOr<Json> DistanceOf(const PackedBatch& batch, const StepFacts& run,
                                const StepFacts& golden) {
  std::vector<double> observed, expected;
  for (const int64_t t : batch.JudgedPositions()) {
    observed.push_back(run.log_probs[t]);
    expected.push_back(golden.log_probs[t]);
  }
  ASSIGN_OR_RETURN(const std::vector<double> errors, AbsoluteErrors(observed, expected));
  ASSIGN_OR_RETURN(const double total_norm, RelativeError(run.total_norm, golden.total_norm));
  const double norm_of_all = NormOfAll(golden);
  Json grad = Json::object();
  for (const auto& [name, weight] : golden.weights) {
    ASSIGN_OR_RETURN(grad[name], GradientDistance(run.weights.at(name), weight, norm_of_all));
  }
  Json distance = {{"loss", {{"abs", LossDistance(std::abs(run.loss - golden.loss), errors)}}},
                   {"log_probs", Spread(errors)},
                   {"total_norm", {{"rel", total_norm}}},
                   {"grad", grad}};
  if (golden.entropy.empty()) return distance;
  ASSIGN_OR_RETURN(const std::vector<double> of_entropy,
                   AbsoluteErrors(run.entropy, golden.entropy));
  distance["entropy"] = Spread(of_entropy);
  return distance;
}

absl::StatusOr<Json> ComputeFloor(const LoadedProbe& probe, const std::vector<StepFacts>& golden,
                                  absl::string_view precision, const Reductions& reductions) {
  ASSIGN_OR_RETURN(std::vector<Arithmetic> ways, WaysOf(precision));
  for (Arithmetic& way : ways) way.reductions = reductions;
  ComputeBF16ProductsFast();
  const auto& batches = probe.folder.steps;
  // A subject may report log-probs, and so the loss, in the type of the precision.
  const int log_prob_bits = precision == "bf16" ? kBf16FractionBits : kFp32FractionBits;
  std::vector<Json> steps, in_fp32;
  for (size_t k = 0; k < batches.size(); ++k) {
    steps.push_back(LeastDistance(batches[k], golden[k], log_prob_bits));
    in_fp32.push_back(LeastOfReports(batches[k], golden[k], kFp32FractionBits));
  }
  const int ditherings = kMembers / static_cast<int>(ways.size());
  Json members = Json::array();
  for (const Arithmetic& way : ways) {
    for (int dither = 0; dither < ditherings; ++dither) {
      Json log_prob_means = Json::array();
      const std::vector<StepFacts> run = RunSteps(probe, Dithered(probe.weights, way, dither), way);
      for (size_t k = 0; k < batches.size(); ++k) {
        ASSIGN_OR_RETURN(const Json distance, DistanceOf(batches[k], run[k], golden[k]));
        RETURN_IF_ERROR(CheckFinite(distance, way));
        TakeLargest(distance, steps[k]);
        if (way.log_probs == at::kFloat) TakeLargest(distance, in_fp32[k]);
        log_prob_means.push_back(distance["log_probs"]["mean"]);
      }
      members.push_back(
          {{"way", way.name}, {"dither", dither}, {"log_prob_means", log_prob_means}});
    }
  }
  ShareScalarsAmongSteps(steps);
  ShareScalarsAmongSteps(in_fp32);
  for (size_t k = 0; k < steps.size(); ++k) {
    ShareAmongExperts(steps[k]);
    if (precision == "bf16") steps[k]["in_fp32"] = in_fp32[k];
  }
  return Json{
      {"schema", 1}, {"precision", std::string(precision)}, {"members", members}, {"steps", steps}};
}

}  // namespace bkm
