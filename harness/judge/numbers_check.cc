// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/numbers_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/check.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/judge/case_file.h"
#include "harness/judge/claims.h"
#include "harness/judge/relation.h"
#include "harness/numerics/error_measures.h"
#include "harness/numerics/optimizer_arithmetic.h"

namespace bkm {
namespace {

// Of a loss that a trainer rounds for its report: transformers' Trainer before version 5.
constexpr int64_t kFewestDecimals = 4;

// In the order in which failures of one step are reported: causes before consequences.
enum Quantity {
  kLogProbsMean,
  kLogProbsQ99,
  kLogProbsMax,
  kLoss,
  kInferredMean,
  kInferredQ99,
  kInferredMax,
  kInFp32Mean,
  kInFp32Q99,
  kInFp32Max,
  kEntropyMean,
  kEntropyQ99,
  kEntropyMax,
  kGradient,
  kGradientNorm,
  kStrayGradient,
  kTotalNorm,
  kCount
};

constexpr NumbersQuantity kQuantities[kCount] = {
    {"log_probs_mean", "log-probs, mean error", " over tokens", "the mean log-prob error",
     reason::kLogProbsOff},
    {"log_probs_q99", "log-probs, 99 % quantile", "", "the 99 % quantile of log-prob errors",
     reason::kLogProbsOff},
    {"log_probs_max", "log-probs, worst token", "", "the largest log-prob error",
     reason::kLogProbsOff},
    {"loss", "loss", "", "the loss", reason::kLossOff},
    {"inferred_mean", "log-probs of inference, mean error", " over tokens",
     "the mean log-prob error of the forward that trains nothing", reason::kLogProbsOff},
    {"inferred_q99", "log-probs of inference, 99 % quantile", "",
     "the 99 % quantile of log-prob errors of the forward that trains nothing",
     reason::kLogProbsOff},
    {"inferred_max", "log-probs of inference, worst token", "",
     "the largest log-prob error of the forward that trains nothing", reason::kLogProbsOff},
    {"in_fp32_mean", "log-probs in fp32 (the real kernel refuses it), mean error", " over tokens",
     "the mean log-prob error of a forward in fp32, which only the stand-in takes,",
     reason::kLogProbsOff},
    {"in_fp32_q99", "log-probs in fp32 (the real kernel refuses it), 99 % quantile", "",
     "the 99 % quantile of log-prob errors of a forward in fp32, which only the stand-in takes,",
     reason::kLogProbsOff},
    {"in_fp32_max", "log-probs in fp32 (the real kernel refuses it), worst token", "",
     "the largest log-prob error of a forward in fp32, which only the stand-in takes,",
     reason::kLogProbsOff},
    {"entropy_mean", "entropy, mean error", " over tokens", "the mean error of the tokens' entropy",
     reason::kEntropyOff},
    {"entropy_q99", "entropy, 99 % quantile", "", "the 99 % quantile of entropy errors",
     reason::kEntropyOff},
    {"entropy_max", "entropy, worst token", "", "the largest entropy error", reason::kEntropyOff},
    {"gradient", "gradient", ", worst tensor", "the gradient", reason::kGradientsOff},
    {"gradient_norm", "norm of a gradient", ", worst tensor", "the gradient norm",
     reason::kGradientsOff},
    {"stray_gradient", "gradient that must be zero, as a share of all", ", worst tensor",
     "the gradient (zero in the golden; as a share of the total norm)", reason::kGradientsOff},
    {"total_norm", "total gradient norm", "", "the total gradient norm", reason::kGradNormOff},
};

// What no user can run: it tells where nothing else does.
bool IsInFp32(int quantity) { return quantity >= kInFp32Mean && quantity <= kInFp32Max; }

// One comparison.
struct Comparison {
  size_t step = 0;
  std::string tensor;  // empty if the quantity belongs to the whole step
  double error = 0;
  double floor = 0;
  double Multiple() const { return InFloors(error, floor); }
};

// The worst comparison of each quantity, over all steps and per step.
class Worst {
 public:
  void Add(Quantity quantity, const Comparison& comparison) {
    Keep(comparison, worst_[quantity]);
    if (steps_.size() <= comparison.step) steps_.resize(comparison.step + 1);
    Keep(comparison, steps_[comparison.step][quantity]);
    all_.emplace_back(quantity, comparison);
  }
  const std::vector<std::pair<Quantity, Comparison>>& all() const { return all_; }
  const std::optional<Comparison>& Of(int quantity) const { return worst_[quantity]; }
  size_t steps() const { return steps_.size(); }
  const std::optional<Comparison>& Of(size_t step, int quantity) const {
    return steps_[step][quantity];
  }

 private:
  static void Keep(const Comparison& comparison, std::optional<Comparison>& worst) {
    if (!worst || comparison.Multiple() > worst->Multiple()) worst = comparison;
  }

  std::array<std::optional<Comparison>, kCount> worst_;
  std::vector<std::array<std::optional<Comparison>, kCount>> steps_;
  std::vector<std::pair<Quantity, Comparison>> all_;
};

// `allowed`: floors.
QuantityFacts QuantityOf(const Comparison& comparison, double allowed) {
  QuantityFacts facts = {.step = comparison.step,
                         .tensor = comparison.tensor,
                         .error = comparison.error,
                         .floor = comparison.floor};
  if (std::isfinite(comparison.Multiple())) facts.multiple = comparison.Multiple();
  if (allowed != kFloorMultiple) facts.allowed = allowed;
  return facts;
}

std::string Sentence(int quantity, const Comparison& comparison, double allowed) {
  std::string text = kQuantities[quantity].subject;
  if (!comparison.tensor.empty()) absl::StrAppend(&text, " of ", comparison.tensor);
  absl::StrAppend(
      &text, absl::StrFormat(" in step %d is off by %.3g", comparison.step + 1, comparison.error));
  if (std::isfinite(comparison.Multiple()))
    absl::StrAppend(&text, absl::StrFormat(", %.1f times the floor (%.0f allowed)",
                                           comparison.Multiple(), allowed));
  return text;
}

// Fraction bits of the type in which log-probs were reported; nullopt if it is precise enough.
std::optional<int> CoarseFractionBits(const std::string& dtype) {
  if (dtype == "bfloat16") return kBf16FractionBits;
  if (dtype == "float16") return 10;
  return std::nullopt;
}

// No report can be closer than half an ulp of its type at the largest value.
double LeastOf(const std::string& dtype, const std::vector<double>& expected) {
  double least = 0;
  if (const auto bits = CoarseFractionBits(dtype)) {
    for (double value : expected) least = std::max(least, HalfUlp(value, *bits));
  }
  return least;
}

// Values that are all bf16 numbers were computed in bf16, in whatever type they are reported.
bool AreInFp32(const std::string& dtype, const std::vector<double>& log_probs) {
  return (dtype == "float32" || dtype == "float64") && !AreExact(log_probs, kBf16FractionBits);
}

// Compares step by step. A wrong shape or a number that is not finite ends the comparison. Missing
// facts are reported last, so they never hide an error.
class Comparer {
 public:
  explicit Comparer(const NumbersInput& input) : input_(input) {}

  CheckResult Run() {
    if (std::optional<CheckResult> stop = Inference()) return WithEvidence(*std::move(stop));
    if (std::optional<CheckResult> stop = InFp32()) return WithEvidence(*std::move(stop));
    if (std::optional<CheckResult> stop = Entropy()) return WithEvidence(*std::move(stop));
    for (size_t k = 0; k < input_.golden.size(); ++k) {
      if (std::optional<CheckResult> stop = Forward(k)) return WithEvidence(*std::move(stop));
    }
    for (size_t k = 0; k < input_.golden.size(); ++k) {
      if (std::optional<CheckResult> stop = Backward(k)) return WithEvidence(*std::move(stop));
    }
    if (std::optional<CheckResult> stop = NoGradient()) return WithEvidence(*std::move(stop));
    if (std::optional<CheckResult> failed = TooFar()) return WithEvidence(*std::move(failed));
    if (std::optional<CheckResult> stop = WrongAnswer()) return WithEvidence(*std::move(stop));
    return WithEvidence(unseen_.value_or(CheckResult::Passed(Stage::kGolden)));
  }

 private:
  // A forward that is off explains gradients that are off by a like number of floors, and a step
  // those that follow. It does not explain what is off by this many times more.
  static constexpr double kExplained = 100;

  // How far a quantity of a step is beyond what is allowed; 0: it is not.
  double Excess(size_t step, int quantity) const {
    const std::optional<Comparison>& worst = worst_.Of(step, quantity);
    if (!worst || worst->Multiple() <= Allowed(quantity)) return 0;
    return worst->Multiple() / Allowed(quantity);
  }

  // The quantity that explains most of the first step that is too far off: the first one, causes
  // before consequences, unless a later one is out of all proportion to it.
  std::optional<std::pair<size_t, int>> Headline() const {
    for (size_t step = 0; step < worst_.steps(); ++step) {
      std::optional<int> most;
      for (int quantity = 0; quantity < kCount; ++quantity) {
        const double excess = Excess(step, quantity);
        if (excess == 0 || IsInFp32(quantity)) continue;
        if (!most || excess > kExplained * Excess(step, *most)) most = quantity;
      }
      if (most) return std::pair(step, *most);
    }
    for (int quantity = kInFp32Mean; quantity <= kInFp32Max; ++quantity) {
      const std::optional<Comparison>& worst = worst_.Of(quantity);
      if (worst && worst->Multiple() > Allowed(quantity)) return std::pair(worst->step, quantity);
    }
    return std::nullopt;
  }

  // One failed claim for each reason, that of the headline first.
  std::optional<CheckResult> TooFar() const {
    const auto headline = Headline();
    if (!headline) return std::nullopt;
    const auto& [first_step, first] = *headline;
    CheckResult result;
    std::vector<const char*> reasons = {kQuantities[first].reason};
    for (const NumbersQuantity& quantity : kQuantities) {
      const bool is_new =
          std::none_of(reasons.begin(), reasons.end(),
                       [&](absl::string_view known) { return known == quantity.reason; });
      if (is_new) reasons.push_back(quantity.reason);
    }
    for (const char* reason : reasons) {
      std::optional<CheckResult> claim = ClaimOf(reason);
      if (!claim) continue;
      if (reason != reasons.front()) {
        result.further.push_back(*std::move(claim));
        continue;
      }
      result = *std::move(claim);
      result.message = Sentence(first, *worst_.Of(first_step, first), Allowed(first));
    }
    return result;
  }

  // Everything that is too far off for this reason.
  std::optional<CheckResult> ClaimOf(absl::string_view reason) const {
    std::vector<FailedPlace> places;
    const std::pair<Quantity, Comparison>* worst = nullptr;
    for (const auto& entry : worst_.all()) {
      const auto& [quantity, comparison] = entry;
      if (kQuantities[quantity].reason != reason || comparison.Multiple() <= Allowed(quantity))
        continue;
      const double multiple = comparison.Multiple();
      if (worst == nullptr || multiple > worst->second.Multiple()) worst = &entry;
      places.push_back({absl::StrCat("step ", comparison.step + 1,
                                     comparison.tensor.empty() ? "" : ", ", comparison.tensor),
                        Sentence(quantity, comparison, Allowed(quantity)),
                        std::isfinite(multiple) ? multiple : std::numeric_limits<double>::max()});
    }
    if (worst == nullptr) return std::nullopt;
    return CheckResult::Failed(Stage::kGolden, kQuantities[worst->first].reason,
                               Sentence(worst->first, worst->second, Allowed(worst->first)))
        .At(std::move(places));
  }

  // Floors.
  double Allowed(int quantity) const {
    const bool is_average =
        quantity == kLogProbsMean || quantity == kInferredMean || quantity == kGradientNorm;
    return is_average ? input_.average_multiple : kFloorMultiple;
  }

  // Before anything was trained, so with the weights of the first step.
  std::optional<CheckResult> Inference() {
    const ForwardOnly& forward = input_.forward_only;
    if (forward.log_probs.empty() || forward.step > 0) {
      Unseen(Stage::kForward, forward.step,
             "no log-probs of a forward that trains nothing were seen");
      return std::nullopt;
    }
    return LogProbs({forward.step, forward.log_probs, forward.log_probs_dtype, kInferredMean,
                     "of the forward that trains nothing "});
  }

  // The same forward, by a fresh engine in fp32.
  std::optional<CheckResult> InFp32() {
    const ForwardOnly& forward = input_.in_fp32;
    if (forward.log_probs.empty() || forward.step > 0) return std::nullopt;
    return LogProbs({forward.step, forward.log_probs, forward.log_probs_dtype, kInFp32Mean,
                     "of the forward in fp32 "});
  }

  // Of each token: the last one of a document has an entropy, though it has no label.
  std::optional<CheckResult> Entropy() {
    const ForwardOnly& forward = input_.forward_only;
    const std::vector<double>& golden = input_.golden.front().entropy;
    if (golden.empty()) return std::nullopt;
    if (forward.entropy.empty() || forward.step > 0) {
      Unseen(Stage::kForward, 0, "no entropy was reported");
      return std::nullopt;
    }
    if (forward.entropy.size() != golden.size())
      return Failed(Stage::kForward, reason::kWrongShape, 0,
                    absl::StrCat(forward.entropy.size(), " entropies were reported for ",
                                 golden.size(), " tokens"));
    for (size_t t = 0; t < golden.size(); ++t) {
      if (!std::isfinite(forward.entropy[t]))
        return Failed(Stage::kForward, reason::kNotFinite, 0,
                      absl::StrCat("the entropy of token ", t, " is not finite"));
    }
    const absl::StatusOr<std::vector<double>> errors = AbsoluteErrors(forward.entropy, golden);
    if (!errors.ok()) return CheckResult::Unreadable(Stage::kGolden, errors.status());
    const double least = LeastOf(forward.entropy_dtype, golden);
    const TokenFloor& floor =
        input_.floor.front().Reports(AreInFp32(forward.entropy_dtype, forward.entropy)).entropy;
    const auto add = [&](Quantity quantity, double error, double of_floor) {
      worst_.Add(quantity, {0, "", error, std::max(of_floor, least)});
    };
    add(kEntropyMean, Mean(*errors), floor.mean);
    add(kEntropyQ99, Quantile(*errors, 0.99), floor.q99);
    add(kEntropyMax, *std::max_element(errors->begin(), errors->end()), floor.max);
    return std::nullopt;
  }

  std::optional<CheckResult> Forward(size_t k) {
    if (input_.tensors[k].log_probs.empty()) {
      Unseen(Stage::kForward, k, "no log-probs were reported");
      return Loss(k);
    }
    std::optional<CheckResult> stop = LogProbs(
        {k, input_.tensors[k].log_probs, input_.reported[k].log_probs_dtype, kLogProbsMean});
    return stop ? std::move(stop) : Loss(k);
  }

  struct Reported {
    size_t k;  // the step of the batch
    const std::vector<double>& log_probs;
    const std::string& dtype;
    int mean;  // the quantity of their mean error; quantile and maximum follow
    const char* of = "";
  };

  std::optional<CheckResult> LogProbs(const Reported& reported) {
    const size_t k = reported.k;
    const std::vector<double>& golden = input_.golden[k].log_probs;
    if (reported.log_probs.size() != golden.size()) {
      return Failed(Stage::kForward, reason::kWrongShape, k,
                    absl::StrCat(reported.log_probs.size(), " log-probs ", reported.of,
                                 "were reported for ", golden.size(), " tokens"));
    }
    std::vector<double> observed, expected;
    for (int64_t position : input_.batches[k].JudgedPositions()) {
      if (!std::isfinite(reported.log_probs[position])) {
        return Failed(
            Stage::kForward, reason::kNotFinite, k,
            absl::StrCat("the log-prob ", reported.of, "of token ", position, " is not finite"));
      }
      observed.push_back(reported.log_probs[position]);
      expected.push_back(golden[position]);
    }
    const absl::StatusOr<std::vector<double>> errors = AbsoluteErrors(observed, expected);
    if (!errors.ok()) return CheckResult::Unreadable(Stage::kGolden, errors.status());
    CompareLogProbs(reported, *errors, expected);
    return std::nullopt;
  }

  void CompareLogProbs(const Reported& reported, const std::vector<double>& errors,
                       const std::vector<double>& expected) {
    const size_t k = reported.k;
    const double least = LeastOf(reported.dtype, expected);
    const FloorStep& floors = IsInFp32(reported.mean) ? input_.fp32_floor[k] : input_.floor[k];
    const TokenFloor& floor =
        floors.Reports(AreInFp32(reported.dtype, reported.log_probs)).log_probs;
    const auto add = [&](int after_mean, double error, double of_floor) {
      worst_.Add(static_cast<Quantity>(reported.mean + after_mean),
                 {k, "", error, std::max(of_floor, least)});
    };
    add(0, Mean(errors), floor.mean);
    add(1, Quantile(errors, 0.99), floor.q99);
    const size_t i = std::max_element(errors.begin(), errors.end()) - errors.begin();
    add(2, errors[i], floor.max);
    if (!worst_token_ || errors[i] > *worst_token_->error) {
      const PackedBatch& batch = input_.batches[k];
      const PackedDocuments documents(batch.document_lengths);
      const int64_t position = batch.JudgedPositions()[i];
      const int64_t document = documents.DocumentOf(position);
      worst_token_ = {.step = k,
                      .position = position,
                      .document = document,
                      .document_position = position - documents.begin(document),
                      .error = errors[i],
                      .golden = expected[i]};
    }
  }

  std::optional<CheckResult> Loss(size_t k) {
    const std::optional<double>& loss = input_.reported[k].loss;
    if (!loss) {
      Unseen(Stage::kForward, k, "no loss was reported");
      return std::nullopt;
    }
    if (!std::isfinite(*loss))
      return Failed(Stage::kForward, reason::kNotFinite, k, "the loss is not finite");
    double error = std::abs(*loss - input_.golden[k].loss);
    const std::optional<int64_t>& decimals = input_.reported[k].loss_decimals;
    if (decimals && *decimals >= kFewestDecimals)
      error = std::max(0.0, error - 0.5 * std::pow(10.0, -static_cast<double>(*decimals)));
    worst_.Add(kLoss, {k, "", error, input_.floor[k].Reports(IsLossInFp32(k)).loss});
    return std::nullopt;
  }

  bool AreLogProbsInFp32(size_t k) const {
    return AreInFp32(input_.reported[k].log_probs_dtype, input_.tensors[k].log_probs);
  }
  // The loss of log-probs in bf16 is that of bf16.
  bool IsLossInFp32(size_t k) const {
    const std::optional<double>& loss = input_.reported[k].loss;
    return loss && !IsExact(*loss, kBf16FractionBits) && AreLogProbsInFp32(k);
  }

  ReportTypes Types() const {
    ReportTypes types = {.fp32_log_probs = true, .fp32_loss = true};
    for (size_t k = 0; k < input_.reported.size(); ++k) {
      types.fp32_log_probs &= AreLogProbsInFp32(k);
      types.fp32_loss &= IsLossInFp32(k);
    }
    return types;
  }

  std::optional<CheckResult> TotalNorm(size_t k) {
    const std::optional<double>& total = input_.reported[k].grad_norm;
    if (!total) {
      Unseen(Stage::kBackward, k, "no total gradient norm was reported");
      return std::nullopt;
    }
    if (!std::isfinite(*total))
      return Failed(Stage::kBackward, reason::kNotFinite, k,
                    "the total gradient norm is not finite");
    const absl::StatusOr<double> error = RelativeError(*total, input_.golden[k].total_norm);
    if (!error.ok()) return CheckResult::Unreadable(Stage::kGolden, error.status());
    worst_.Add(kTotalNorm, {k, "", *error, std::max(input_.floor[k].total_norm, kNormReduction)});
    return std::nullopt;
  }

  std::optional<CheckResult> Backward(size_t k) {
    if (std::optional<CheckResult> stop = TotalNorm(k)) return stop;
    for (const auto& [name, golden] : input_.golden[k].tensors) {
      if (std::optional<CheckResult> stop = Tensor(k, name, golden)) return stop;
    }
    return std::nullopt;
  }

  std::optional<CheckResult> Tensor(size_t k, const std::string& name, const GoldenTensor& golden) {
    const auto seen = input_.tensors[k].tensors.find(name);
    if (seen == input_.tensors[k].tensors.end() || seen->second.gradient.empty()) {
      Unseen(Stage::kBackward, k, absl::StrCat("the gradient of ", name, " was not seen"));
      return std::nullopt;
    }
    const SampledTensor& sampled = seen->second;
    if (sampled.gradient.size() != golden.gradient.size()) {
      return Failed(Stage::kBackward, reason::kWrongShape, k,
                    absl::StrCat("the gradient of ", name, " was sampled at ",
                                 sampled.gradient.size(), " places, not ", golden.gradient.size()));
    }
    const auto is_finite = [](double x) { return std::isfinite(x); };
    if (!std::isfinite(sampled.norms[0]) ||
        !std::all_of(sampled.gradient.begin(), sampled.gradient.end(), is_finite)) {
      return Failed(Stage::kBackward, reason::kNotFinite, k,
                    absl::StrCat("the gradient of ", name, " is not finite"));
    }
    const auto floor = input_.floor[k].gradients.find(name);
    if (floor == input_.floor[k].gradients.end()) {
      return CheckResult::Unreadable(
          Stage::kGolden, absl::NotFoundError(absl::StrCat("the floor has no gradient of ", name)));
    }
    if (golden.gradient_norm == 0) {
      const double norm = std::max(sampled.norms[0], bkm::TotalNorm(sampled.gradient));
      worst_.Add(kStrayGradient, {k, name, ShareOf(norm, NormOfAll(input_.golden[k])),
                                  input_.floor[k].ShareFor(name)});
      return std::nullopt;
    }
    const absl::StatusOr<double> error = RelativeNormError(sampled.gradient, golden.gradient);
    const absl::StatusOr<double> norm_error = RelativeError(sampled.norms[0], golden.gradient_norm);
    if (!error.ok()) return CheckResult::Unreadable(Stage::kGolden, error.status());
    if (!norm_error.ok()) return CheckResult::Unreadable(Stage::kGolden, norm_error.status());
    const double allowed = std::max(floor->second, kNormReduction);
    worst_.Add(kGradient, {k, name, *error, allowed});
    // By the triangle inequality, the error of the norm is at most the error of the gradient.
    worst_.Add(kGradientNorm, {k, name, *norm_error, allowed});
    return std::nullopt;
  }

  // A tensor whose gradient is exactly zero in every step, and the golden's is in none. The floor
  // of a gradient may be as large as the gradient: experts that few tokens reach have such floors.
  std::optional<CheckResult> NoGradient() const {
    for (const auto& [name, first] : input_.golden.front().tensors) {
      bool is_missing = true;
      for (size_t k = 0; k < input_.golden.size() && is_missing; ++k) {
        const auto seen = input_.tensors[k].tensors.find(name);
        const auto golden = input_.golden[k].tensors.find(name);
        is_missing = seen != input_.tensors[k].tensors.end() && !seen->second.gradient.empty() &&
                     seen->second.norms[0] == 0 && golden != input_.golden[k].tensors.end() &&
                     golden->second.gradient_norm > 0;
      }
      if (is_missing)
        return CheckResult::Failed(
            Stage::kBackward, reason::kGradientsOff,
            absl::StrFormat("the gradient of %s is zero in every step; its norm is %.3g in step 1",
                            name, first.gradient_norm));
    }
    return std::nullopt;
  }

  // A fault that the floor hides, but that the reference predicts.
  std::optional<CheckResult> WrongAnswer() const {
    if (!NearestWrongAnswer(input_)) return std::nullopt;
    const double multiple = worst_.Of(0, kLogProbsMean)->Multiple();
    CheckResult result =
        Failed(Stage::kGolden, reason::kLogProbsOff, 0,
               absl::StrFormat("log-probs are %.1f floors from the right ones, and nearer to "
                               "those of a known fault",
                               multiple));
    const std::string message = result.message;
    return std::move(result).At({{"step 1", message, multiple}});
  }

  static CheckResult Failed(Stage stage, const char* code, size_t k, absl::string_view what) {
    return CheckResult::Failed(stage, code, absl::StrCat("in step ", k + 1, " ", what));
  }
  void Unseen(Stage stage, size_t k, absl::string_view what) {
    if (!unseen_) unseen_ = CheckResult::Unseen(stage, absl::StrCat("in step ", k + 1, " ", what));
  }

  CheckResult WithEvidence(CheckResult result) const {
    const ReportTypes types = Types();
    NumbersFacts facts = {
        .allowed_multiple = kFloorMultiple, .worst_token = worst_token_, .reported_in_fp32 = types};
    for (int quantity = 0; quantity < kCount; ++quantity) {
      if (worst_.Of(quantity))
        facts.quantities[kQuantities[quantity].key] =
            QuantityOf(*worst_.Of(quantity), Allowed(quantity));
    }
    const Sensitivity least =
        SensitivityOf(input_.golden, input_.floor, input_.average_multiple, types);
    if (std::isfinite(least.log_probs_mean)) facts.least_log_probs_mean = least.log_probs_mean;
    if (const size_t blind = least.BlindGradients(); blind > 0)
      facts.blind_gradients = {static_cast<int64_t>(blind),
                               static_cast<int64_t>(least.gradients.size())};
    result.facts = FactsJson(facts);
    return result;
  }

  const NumbersInput& input_;
  Worst worst_;
  std::optional<WorstToken> worst_token_;
  std::optional<CheckResult> unseen_;  // the first
};

}  // namespace

std::vector<NumbersQuantity> NumbersQuantities() {
  return {std::begin(kQuantities), std::end(kQuantities)};
}

double AverageMultiple(absl::string_view precision) {
  return precision == "bf16" ? 2 : kFloorMultiple;
}

void Describe(Fields& fields, QuantityFacts& facts) {
  fields.Field("step", facts.step);
  fields.Field("tensor", facts.tensor);
  fields.Field("error", facts.error);
  fields.Field("floor", facts.floor);
  fields.Field("multiple", facts.multiple);
  fields.Field("allowed", facts.allowed);
}

void Describe(Fields& fields, WorstToken& token) {
  fields.Field("step", token.step);
  fields.Field("position", token.position);
  fields.Field("document", token.document);
  fields.Field("document_position", token.document_position);
  fields.Field("error", token.error);
  fields.Field("golden", token.golden);
}

void Describe(Fields& fields, ReportTypes& types) {
  std::optional<bool> log_probs = types.fp32_log_probs, loss = types.fp32_loss;
  fields.Field("log_probs", log_probs);  // also where false
  fields.Field("loss", loss);
  types = {log_probs.value_or(false), loss.value_or(false)};
}

void Describe(Fields& fields, BlindGradients& blind) {
  fields.Field("tensors", blind.tensors);
  fields.Field("of", blind.of);
}

void Describe(Fields& fields, NumbersFacts& facts) {
  fields.Field("allowed_multiple", facts.allowed_multiple);
  for (const NumbersQuantity& quantity : kQuantities) {
    std::optional<QuantityFacts> found;
    if (const QuantityFacts* known = facts.Find(quantity.key)) found = *known;
    fields.Field(quantity.key, found);
    if (found) facts.quantities[quantity.key] = *found;
  }
  fields.Field("worst_token", facts.worst_token);
  fields.Field("reported_in_fp32", facts.reported_in_fp32);
  fields.Field("least_log_probs_mean", facts.least_log_probs_mean);
  fields.Field("blind_gradients", facts.blind_gradients);
}

const QuantityFacts* NumbersFacts::Find(absl::string_view key) const {
  const auto found = quantities.find(std::string(key));
  return found == quantities.end() ? nullptr : &found->second;
}

double InFloors(double error, double floor) {
  if (error == 0) return 0;
  return floor > 0 ? error / floor : std::numeric_limits<double>::infinity();
}

std::optional<Diagnosis> NearestWrongAnswer(const NumbersInput& input) {
  if (input.reported.empty() || input.tensors.empty() || input.batches.empty() ||
      input.golden.empty() || input.floor.empty())
    return std::nullopt;
  const GoldenStep& golden = input.golden.front();
  const std::string& dtype = input.reported.front().log_probs_dtype;
  const std::vector<double>& log_probs = input.tensors.front().log_probs;
  const double floor =
      std::max(input.floor.front().Reports(AreInFp32(dtype, log_probs)).log_probs.mean,
               LeastOf(dtype, golden.log_probs));
  return NearerThanRight(log_probs, golden.log_probs, golden.predicted, input.batches.front(),
                         floor);
}

CheckResult CheckNumbers(const NumbersInput& input) {
  const size_t steps = input.golden.size();
  HARNESS_CHECK(input.tensors.size() == input.reported.size()) << "tensors of another cell";
  if (input.floor.size() != steps || input.batches.size() != steps || steps == 0) {
    return CheckResult::Unreadable(
        Stage::kGolden, absl::InvalidArgumentError(
                            absl::StrCat("golden, floor and batch differ in steps: ", steps, ", ",
                                         input.floor.size(), ", ", input.batches.size())));
  }
  if (input.reported.size() != steps) {
    return CheckResult::Unseen(
        Stage::kStep, absl::StrCat(input.reported.size(), " of ", steps, " steps were reported"));
  }
  return Comparer(input).Run();
}

namespace {

absl::StatusOr<ForwardOnly> ForwardOnlyOf(const CaseFile& file,
                                          const std::optional<ObservedForward>& seen) {
  ForwardOnly forward = {.step = static_cast<size_t>(file.reference().folder->reach.step)};
  if (!seen) return forward;
  forward.log_probs_dtype = seen->log_probs_dtype;
  ASSIGN_OR_RETURN(forward.log_probs, ReadForwardOnly("log_probs", *seen, file.input.cell_dir));
  forward.entropy_dtype = seen->entropy_dtype;
  ASSIGN_OR_RETURN(forward.entropy, ReadForwardOnly("entropy", *seen, file.input.cell_dir));
  return forward;
}

}  // namespace

CheckResult CheckNumbersOf(const CaseFile& file, std::span<const ObservedStep> reported,
                           const std::vector<StepTensors>& steps) {
  const ReferenceData& reference = file.reference();
  if (!reference.folder.ok())
    return CheckResult::Unreadable(Stage::kGolden, reference.folder.status());
  if (!reference.golden.ok()) return WithoutReference(Stage::kGolden, reference.golden.status());
  const auto floor = FloorOf(file.input);
  if (!floor.ok()) return WithoutReference(Stage::kGolden, floor.status());
  absl::StatusOr<ForwardOnly> forward = ForwardOnlyOf(file, file.seen().forward_only);
  if (!forward.ok()) return CheckResult::Unreadable(Stage::kForward, forward.status());
  NumbersInput input = {
      .reported = reported,
      .tensors = steps,
      .batches = reference.folder->steps,
      .golden = *reference.golden,
      .floor = **floor,
      .forward_only = *std::move(forward),
      .average_multiple = AverageMultiple(PrecisionOf(file.seen(), file.probe()))};
  if (file.seen().forward_in_fp32) {
    absl::StatusOr<ForwardOnly> in_fp32 = ForwardOnlyOf(file, file.seen().forward_in_fp32);
    if (!in_fp32.ok()) return CheckResult::Unreadable(Stage::kForward, in_fp32.status());
    const auto fp32_floor = FloorOf(file.input, "fp32");
    if (!fp32_floor.ok()) return WithoutReference(Stage::kGolden, fp32_floor.status());
    input.in_fp32 = *std::move(in_fp32);
    input.fp32_floor = **fp32_floor;
  }
  return CheckNumbers(input);
}

namespace {

CheckResult CheckNumbersOfSteps(const CaseFile& file) {
  if (!file.steps.ok()) return CheckResult::Unreadable(Stage::kGolden, file.steps.status());
  return CheckNumbersOf(file, file.seen().steps, *file.steps);
}

}  // namespace

extern const Claim kNumbersClaim = {
    .name = "numbers",
    .rung = Stage::kGolden,
    .says = "log-probs, loss and gradients are those of the fp64 golden",
    .witness =
        "log-probs of each token, in each training step and in a forward that trains nothing "
        "(verl's `infer_batch`), the loss, the gradient of each tensor at sampled places and "
        "in norm, the total norm; the entropy of each token in the forward that trains "
        "nothing, if asked for. Where a stand-in ran for a kernel that takes bf16 only, a fresh "
        "engine repeats the forward that trains nothing in fp32, which no user can run, and its "
        "log-probs have the floor of fp32; not if anything of it was computed in bf16",
    .cannot_see =
        "an error below 4 floors (2 for the mean log-prob error and for norms of gradients "
        "in bf16), unless it is one that the reference predicts. The entropies of "
        "neighbouring tokens differ by 25 floors if they are computed in fp32, and by 2 if "
        "they are computed in bf16: there, entropies of other tokens are not seen. In bf16, "
        "the floor of an expert that few tokens reach is as large as its gradient: there, "
        "only a gradient that is zero in every step is seen",
    .applies = OfFinishedCells,
    .check = CheckNumbersOfSteps,
};

}  // namespace bkm
