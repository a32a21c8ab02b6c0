// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_STEP_FILES_H_
#define HARNESS_JUDGE_STEP_FILES_H_

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/model/observation.h"
#include "harness/numerics/safetensors.h"

namespace bkm {

// One tensor of one step, sampled at the probe's places.
struct SampledTensor {
  std::vector<double> gradient;  // after clipping
  std::vector<double> before;
  std::vector<double> after;
  std::array<double, 3> norms = {};  // whole tensor: gradient, parameter before, parameter after
};

// What a trainer gave to the model in one step, in its own order.
struct TrainedBatch {
  std::vector<int64_t> input_ids;  // [tokens]
  std::vector<int64_t> document_lengths;
  // By the gradient of the logits: the token that each place is trained to predict, or -1, and by
  // how much the loss falls with its log-prob.
  std::vector<int64_t> labels;  // [tokens]
  std::vector<double> weights;  // [tokens]
  // How many places are trained that belong to no document, such as padding.
  int64_t outside = 0;
  // How far the gradient of the logits is from that of a cross entropy with these labels and
  // weights, at most, as a share of the weight.
  double residual = 0;
};

// A cell's tensors/stepK.safetensors.
struct StepTensors {
  std::vector<double> log_probs;  // [tokens]; empty if not observed
  std::map<std::string, SampledTensor> tensors;
  std::optional<TrainedBatch> batch = {};  // of a cell that a trainer drives
};

// Whether the step changed a sampled parameter. If not, nothing tells what was handed over after it
// from the weights before training.
bool MovedParameters(const StepTensors& step);

struct GoldenTensor {
  std::vector<double> gradient;  // after clipping
  double gradient_norm = 0;
};

struct GoldenStep {
  std::vector<double> log_probs;
  std::vector<double> entropy = {};  // [tokens]; empty if the probe does not ask for it
  double loss = 0;
  double total_norm = 0;  // before clipping
  std::map<std::string, GoldenTensor> tensors;
  // Log-probs of predicted wrong answers, by name; first step only.
  std::map<std::string, std::vector<double>> predicted;
};

// |difference| over judged tokens.
struct TokenFloor {
  double mean = 0;
  double q99 = 0;  // 99 % quantile
  double max = 0;
};

// The floors of a step's reports of log-probs, loss and entropy.
struct ReportFloor {
  double loss = 0;  // absolute
  TokenFloor log_probs = {};
  TokenFloor entropy = {};  // zero if the probe does not ask for it
};

// The floors of one step: how far a right run may be from the golden.
struct FloorStep {
  ReportFloor reports;  // in the type of the precision
  // Of what is computed in fp32. None at precision fp32, where `reports` says it, and in floors of
  // older versions; some of these lack the entropy, and its floor is that of `reports`.
  std::optional<ReportFloor> in_fp32 = {};
  double total_norm = 0;                    // relative
  std::map<std::string, double> gradients;  // relative, over the sampled places
  // The error of a gradient as a share of the norm of all gradients. It is compared where the
  // golden's gradient is zero.
  std::map<std::string, double> shares;
  // Of reports that are computed in fp32, or in the type of the precision.
  const ReportFloor& Reports(bool are_in_fp32) const {
    return are_in_fp32 && in_fp32 ? *in_fp32 : reports;
  }
  // 0 for a tensor that the floor does not have: floors of older versions have no shares.
  double ShareFor(const std::string& name) const;
};

// The norm of all gradients together, after clipping.
double NormOfAll(const GoldenStep& step);
double NormOfAll(const StepTensors& step);
// `norm` as a share of `norm_of_all`: 0 for no norm, infinite for any other share of nothing.
double ShareOf(double norm, double norm_of_all);

// Each function reads one file of harness/protocol/README.md. Errors name the path.
absl::StatusOr<StepTensors> ReadStepTensors(const SafetensorsFile& file);
// The tensor `name` of the forward that trains nothing, "log_probs" or "entropy"; empty if it was
// not reported.
absl::StatusOr<std::vector<double>> ReadForwardOnly(const std::string& name,
                                                    const ObservedForward& forward,
                                                    const std::filesystem::path& cell_dir);
// One element per step of the cell; empty for a step that wrote no file.
absl::StatusOr<std::vector<StepTensors>> ReadSteps(std::span<const ObservedStep> steps,
                                                   const std::filesystem::path& cell_dir);
absl::StatusOr<std::vector<GoldenStep>> ReadGoldenFile(const std::filesystem::path& path);
absl::StatusOr<std::vector<FloorStep>> ReadFloorFile(const std::filesystem::path& path);

}  // namespace bkm

#endif  // HARNESS_JUDGE_STEP_FILES_H_
