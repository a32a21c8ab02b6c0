// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/rank_diagnosis.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "harness/judge/document_relation.h"
#include "harness/judge/gradient_relation.h"
#include "harness/judge/numbers_check.h"
#include "harness/judge/optimizer_check.h"
#include "harness/judge/shard_relation.h"
#include "harness/numerics/error_measures.h"
#include "harness/numerics/model_weights.h"
#include "harness/numerics/optimizer_arithmetic.h"
#include "harness/numerics/probe_data.h"

namespace bkm {
namespace {

// The largest of 256 errors is about this many times their root mean square.
constexpr double kLargestOfMany = 4;
constexpr double kLoadedFp32 = 1e-6;       // relative
constexpr double kLoadedBf16 = 1.0 / 256;  // the same, of an engine that rounds to bf16
// Reductions of fewer elements than this share of the model's are those of norms and losses.
constexpr double kLeastReduced = 0.01;

// The gradients of one step as before clipping, in the golden's scale.
struct StepGradients {
  std::map<std::string, ShardedSample> samples;
  std::map<std::string, double> tolerances;  // relative, by tensor
  std::map<std::string, bool> is_off;        // by tensor
  bool AreOff() const {
    return std::any_of(is_off.begin(), is_off.end(), [](const auto& one) { return one.second; });
  }
};

class Diagnoser {
 public:
  explicit Diagnoser(const RankDiagnosisInput& input) : input_(input) {
    const absl::StatusOr<ModelShape> shape = ShapeOf(input.probe);
    if (!shape.ok()) return;
    for (WeightShape& weight : WeightsOf(*shape)) weights_.emplace(weight.name, weight);
  }

  RankDiagnosis Diagnosis() const {
    RankDiagnosis diagnosis = FirstThatIsOff();
    diagnosis.reductions = Reductions();
    return diagnosis;
  }

 private:
  RankDiagnosis FirstThatIsOff() const {
    if (const auto loaded = Loaded()) return {.clauses = {*loaded}};
    for (size_t k = 0; k < input_.steps.size(); ++k) {
      RankDiagnosis diagnosis = OfStep(k);
      if (!diagnosis.clauses.empty() || Gradients(k).AreOff()) return diagnosis;
    }
    return {};
  }

  const Layout& layout() const { return input_.probe.layout; }

  // The sample of a tensor without values; nullopt if its shape or places are not known.
  std::optional<ShardedSample> SampleOf(const std::string& name) const {
    const auto weight = weights_.find(name);
    const auto places = input_.folder.places.find(name);
    if (weight == weights_.end() || places == input_.folder.places.end()) return std::nullopt;
    return ShardedSample{.shape = weight->second.shape, .places = places->second};
  }

  // A shard of a weight that was not loaded.
  std::optional<std::string> Loaded() const {
    const bool is_rounded =
        input_.probe.precision == "bf16" || input_.probe.checkpoint != "single-fp32";
    const double tolerance = is_rounded ? kLoadedBf16 : kLoadedFp32;
    std::map<std::string, ShardedSample> samples;
    for (const auto& [name, tensor] : input_.steps.front().tensors) {
      std::optional<ShardedSample> sample = SampleOf(name);
      if (!sample || tensor.before.size() != sample->places.size()) continue;
      const WeightShape& weight = weights_.at(name);
      sample->right_at = [&weight, this](const std::vector<int64_t>& places) {
        const std::vector<float> values = DrawWeightAt(weight, input_.probe.seed, places);
        return std::vector<double>(values.begin(), values.end());
      };
      sample->seen = tensor.before;
      sample->right = sample->right_at(sample->places);
      for (size_t i = 0; i < sample->places.size(); ++i) {
        const double allowed = tolerance * std::abs(sample->right[i]);
        sample->is_right.push_back(std::abs(sample->seen[i] - sample->right[i]) <= allowed);
        sample->counts.push_back(sample->right[i] != 0);
      }
      samples.emplace(name, *std::move(sample));
    }
    return DescribeShards("the loaded weight", samples, layout());
  }

  RankDiagnosis OfStep(size_t k) const {
    RankDiagnosis diagnosis;
    std::vector<std::string>& clauses = diagnosis.clauses;
    const auto add = [&](std::optional<std::string> clause) {
      if (!clause) return false;
      clauses.push_back(*std::move(clause));
      return true;
    };
    const StepTensors& step = input_.steps[k];
    const FloorStep& floor = input_.floor[k];
    if (const std::optional<DocumentsOfRanks> documents = DocumentsAt(k)) {
      add(DescribeLogProbs(*documents, step.log_probs, input_.golden[k].log_probs,
                           kFloorMultiple * floor.reports.log_probs.q99));
      if (const auto& loss = input_.observation.steps[k].loss)
        add(DescribeLoss(*documents, *loss, step.log_probs, kFloorMultiple * floor.reports.loss));
    }
    const StepGradients gradients = Gradients(k);
    const bool replicas_differ = ReplicasDiffer(k);
    if (gradients.AreOff() || replicas_differ) {
      const bool is_sharded =
          add(DescribeShards("the gradient of", gradients.samples, layout())) ||
          (diagnosis.has_factors =
               add(DescribeShardFactors(gradients.samples, gradients.tolerances, layout())));
      const bool is_unreduced = replicas_differ || (!is_sharded && add(Unreduced(k)));
      if (replicas_differ || !(is_sharded || is_unreduced)) add(OfDocuments(k));
      if (is_unreduced) add(MissingReduction());
      if (clauses.empty()) add(OneLayer(gradients));
    } else if (clauses.empty()) {
      add(DescribeShards("the update of", Updates(k), layout()));
    }
    return diagnosis;
  }

  StepGradients Gradients(size_t k) const {
    StepGradients gradients;
    const GoldenStep& golden = input_.golden[k];
    const auto& norm = input_.observation.steps[k].grad_norm;
    const double clip = input_.probe.optimizer.clip_norm;
    if (!norm || !std::isfinite(*norm)) return gradients;
    const double scale = ClippedBy(*norm, clip) / ClippedBy(golden.total_norm, clip);
    for (const auto& [name, right] : golden.tensors) {
      const auto seen = input_.steps[k].tensors.find(name);
      const auto floor = input_.floor[k].gradients.find(name);
      std::optional<ShardedSample> sample = SampleOf(name);
      if (seen == input_.steps[k].tensors.end() || floor == input_.floor[k].gradients.end() ||
          !sample || right.gradient.size() != sample->places.size() ||
          seen->second.gradient.size() != right.gradient.size() || !(right.gradient_norm > 0))
        continue;
      const double tolerance = kFloorMultiple * std::max(floor->second, kNormReduction);
      const double norm_of_samples = TotalNorm(right.gradient);
      const double allowed = kLargestOfMany * tolerance * norm_of_samples /
                             std::sqrt(static_cast<double>(right.gradient.size()));
      sample->right = right.gradient;
      double off = 0;
      for (size_t i = 0; i < right.gradient.size(); ++i) {
        sample->seen.push_back(scale * seen->second.gradient[i]);
        const double error = sample->seen[i] - right.gradient[i];
        off += error * error;
        sample->is_right.push_back(std::abs(error) <= allowed);
        sample->counts.push_back(std::abs(right.gradient[i]) > allowed);
      }
      gradients.is_off[name] = !(std::sqrt(off) <= tolerance * norm_of_samples);
      // A tensor that is right as a whole has no wrong shard.
      if (!gradients.is_off[name]) sample->is_right.assign(sample->is_right.size(), true);
      gradients.tolerances[name] = tolerance;
      gradients.samples.emplace(name, *std::move(sample));
    }
    return gradients;
  }

  std::map<std::string, ShardedSample> Updates(size_t k) const {
    std::map<std::string, ShardedSample> samples;
    for (auto& [name, update] :
         ExpectedUpdates(input_.probe.optimizer, input_.observation.steps, input_.steps, k)) {
      std::optional<ShardedSample> sample = SampleOf(name);
      if (!sample || update.expected.size() != sample->places.size()) continue;
      const SampledTensor& seen = input_.steps[k].tensors.at(name);
      sample->seen = seen.after;
      sample->before = seen.before;
      sample->right = update.expected;
      sample->is_right = update.is_right;
      for (size_t i = 0; i < sample->places.size(); ++i)
        sample->counts.push_back(update.expected[i] != seen.before[i]);
      samples.emplace(name, *std::move(sample));
    }
    return samples;
  }

  std::optional<DocumentsOfRanks> DocumentsAt(size_t k) const {
    return DocumentsOfRanks::Of(input_.observation.ranks, k, input_.folder.steps[k]);
  }

  // How the ranks' documents count, in the first step from `first` on that has enough of each
  // rank's tokens. Gradients of later steps are those of parameters that are a little off.
  std::optional<std::string> OfDocuments(size_t first) const {
    for (size_t k = first; k < input_.steps.size(); ++k) {
      const StepGradients gradients = Gradients(k);
      const std::optional<DocumentsOfRanks> documents = DocumentsAt(k);
      if (!documents) return std::nullopt;
      const auto found =
          DescribeGradients(*documents, RowsOfTokens(gradients), FloorOfRows(gradients));
      if (found) return k == first ? *found : absl::StrCat("in step ", k + 1, " ", *found);
    }
    return std::nullopt;
  }

  std::optional<std::string> Unreduced(size_t first) const {
    std::vector<StepGradients> gradients;
    for (size_t k = first; k < input_.steps.size(); ++k) gradients.push_back(Gradients(k));
    std::vector<StepRows> rows;
    double floor = 0;
    for (size_t i = 0; i < gradients.size(); ++i) {
      const std::optional<DocumentsOfRanks> documents = DocumentsAt(first + i);
      if (!documents) return std::nullopt;
      rows.push_back({*documents, RowsOfTokens(gradients[i])});
      floor = std::max(floor, FloorOfRows(gradients[i]));
    }
    return DescribeUnreduced(rows, floor, layout().shards());
  }

  // The embedding, and a head of its own. A critic's head has no rows of tokens. The result refers
  // to `gradients`.
  static std::vector<TokenRows> RowsOfTokens(const StepGradients& gradients) {
    std::vector<TokenRows> rows;
    for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"}) {
      const auto sample = gradients.samples.find(name);
      if (sample == gradients.samples.end() || sample->second.shape.size() != 2) continue;
      rows.push_back({sample->second.shape[0], sample->second.shape[1], sample->second.places,
                      sample->second.seen, sample->second.right});
    }
    return rows;
  }

  static double FloorOfRows(const StepGradients& gradients) {
    const auto tolerance = gradients.tolerances.find("model.embed_tokens.weight");
    return tolerance == gradients.tolerances.end() ? INFINITY : tolerance->second / kFloorMultiple;
  }

  // Whether ranks have other gradients, so that nothing made them equal.
  bool ReplicasDiffer(size_t k) const {
    const std::string when = absl::StrCat("step ", k + 1);
    const auto& differences = input_.observation.rank_differences;
    return std::any_of(differences.begin(), differences.end(), [&](const auto& difference) {
      return difference.when == when && absl::StartsWith(difference.name, "grad/");
    });
  }

  double ElementsOfModel() const {
    double elements = 0;
    for (const auto& [name, weight] : weights_) elements += static_cast<double>(weight.numel());
    return elements;
  }

  static bool Reduces(const ObservedCollective& one) {
    const bool reduces = absl::StartsWith(one.op, "all_reduce") ||
                         absl::StartsWith(one.op, "reduce_scatter") || one.op == "reduce";
    return reduces && one.ranks > 1 && one.stage != "witness";
  }

  // Whether no rank reduced more over the data-parallel ranks than norms and losses. Reducers that
  // C++ code starts are not recorded, so other evidence must say that gradients were not reduced.
  std::optional<std::string> MissingReduction() const {
    double elements = 0;
    for (const ObservedRank& rank : input_.observation.ranks) {
      if (rank.collectives.empty()) return std::nullopt;
      for (const ObservedCollective& one : rank.collectives)
        elements += Reduces(one) ? static_cast<double>(one.elements) : 0;
    }
    if (elements > kLeastReduced * ElementsOfModel()) return std::nullopt;
    return absl::StrCat("no collective reduced the gradients over the group of ",
                        layout().data_ranks());
  }

  // Where all ranks are data-parallel ranks, nothing else reduces so much after the forward pass.
  std::string Reductions() const {
    std::set<std::string> kinds;
    for (const ObservedRank& rank : input_.observation.ranks) {
      for (const ObservedCollective& one : rank.collectives) {
        const bool is_after_forward = one.stage == "backward" || one.stage == "step";
        if (is_after_forward && Reduces(one) && layout().ranks() == layout().data_ranks() &&
            static_cast<double>(one.elements) > kLeastReduced * ElementsOfModel())
          kinds.insert(absl::StrCat(one.op, " (", one.reduce, ") over ", one.ranks, " ranks"));
      }
    }
    return absl::StrJoin(kinds, " and ");
  }

  // Gradients that are off in one layer alone: its parameters are reduced together.
  static std::optional<std::string> OneLayer(const StepGradients& gradients) {
    std::optional<std::string> layer;
    const auto layer_of = [](absl::string_view name) {
      absl::string_view rest = name;
      if (!absl::ConsumePrefix(&rest, "model.layers.")) return std::string();
      return absl::StrCat("model.layers.", rest.substr(0, rest.find('.')));
    };
    size_t off = 0, all = 0;
    for (const auto& [name, is_off] : gradients.is_off) {
      if (!is_off) continue;
      const std::string of = layer_of(name);
      if (of.empty() || (layer && *layer != of)) return std::nullopt;
      layer = of;
      ++off;
    }
    if (!layer) return std::nullopt;
    for (const auto& [name, is_off] : gradients.is_off) all += layer_of(name) == *layer;
    if (2 * off <= all || all == gradients.is_off.size()) return std::nullopt;
    return absl::StrFormat(
        "gradients are off in %d of %d tensors of %s and right in every other tensor: the "
        "parameters of a layer are reduced together",
        off, all, *layer);
  }

  const RankDiagnosisInput& input_;
  std::map<std::string, WeightShape> weights_;
};

}  // namespace

RankDiagnosis DiagnoseRanks(const RankDiagnosisInput& input) {
  const size_t steps = input.steps.size();
  if (steps == 0 || input.probe.layout == Layout() || input.observation.steps.size() != steps ||
      input.golden.size() != steps || input.floor.size() != steps ||
      input.folder.steps.size() != steps)
    return {};
  return Diagnoser(input).Diagnosis();
}

}  // namespace bkm
