// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/data_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/judge/case_file.h"
#include "harness/judge/claims.h"
#include "harness/judge/reasons.h"
#include "harness/model/dealing.h"
#include "harness/numerics/conversations.h"
#include "harness/numerics/error_measures.h"
#include "harness/numerics/model_shapes.h"

namespace bkm {
namespace {

bool IsLabel(int64_t label) { return label != kNoLabel; }

struct Document {
  std::span<const int64_t> tokens;
  std::vector<int64_t> labels;      // [tokens]; kNoLabel where nothing is trained
  std::vector<double> weights;      // [tokens]; of expected ones, times the number that count
  std::vector<double> slacks = {};  // [tokens] of expected ones, likewise: how far they may be off
  // [tokens] Where rounding decides whether a loss is clipped; empty of a loss that is never.
  std::vector<bool> may_be_clipped = {};
};

constexpr int64_t kLabelOfValues = 0;  // which have no token to predict

// By how much a roll-out's loss, times the number of tokens that count, falls with the log-prob of
// the token that position `t` predicts, or with the critic's value there.
struct RolloutWeight {
  double weight = 0;
  double slack = 0;  // by rounding of the log-prob or value
  bool may_be_clipped = false;
};

// `rounding`: how far the log-prob of the loss may be from the one that was seen.
RolloutWeight PolicyWeight(double log_prob, double rounding, double old, double advantage,
                           const PpoSettings& ppo) {
  const double ratio = std::exp(log_prob - old), weight = advantage * ratio;
  const auto is_near = [&](double bound) {
    return std::abs(ratio / bound - 1) < kNearClip + rounding;
  };
  const double least = 1 - ppo.clip_low, most = 1 + ppo.clip_high;
  const bool is_clipped = advantage >= 0 ? ratio > most : ratio < least || ratio > ppo.clip_dual;
  return {
      .weight = is_clipped ? 0 : weight,
      .slack = std::abs(weight) * rounding,
      .may_be_clipped = advantage >= 0 ? is_near(most) : is_near(least) || is_near(ppo.clip_dual)};
}

RolloutWeight ValueWeight(double value, double rounding, double old, double aim,
                          const PpoSettings& ppo) {
  const double close = kNearClip + rounding;
  const double near = std::clamp(value, old - ppo.clip_value, old + ppo.clip_value);
  const double plain = std::abs(value - aim), clipped = std::abs(near - aim);
  const bool at_edge = std::abs(std::abs(value - old) - ppo.clip_value) < close;
  const bool is_tie = near != value && std::abs(plain - clipped) < close;
  return {.weight = clipped > plain ? 0 : aim - value,
          .slack = rounding,
          .may_be_clipped = at_edge || is_tie};
}

// Of the position that predicts token t + 1. `seen`: log-probs or values.
RolloutWeight WeightOf(const PackedBatch& batch, std::span<const double> seen, size_t t,
                       const ExpectedData& all) {
  const double old = batch.rollout.old[t + 1], credit = batch.rollout.credit[t + 1];
  const double rounding = HalfUlp(seen[t], all.fraction_bits);
  return all.of_values ? ValueWeight(seen[t], rounding, old, credit, all.ppo)
                       : PolicyWeight(seen[t], rounding, old, credit, all.ppo);
}

// `log_probs`: those that were seen; of a roll-out's batch nothing is known of the loss without
// them.
std::vector<Document> ExpectedOf(const PackedBatch& batch, std::span<const double> log_probs,
                                 const ExpectedData& all) {
  const std::vector<int64_t> counted = batch.Counted();
  const size_t tokens = counted.size();
  std::vector<int64_t> labels =
      all.of_values ? std::vector<int64_t>(tokens, kLabelOfValues) : batch.Labels();
  std::vector<double> weights(tokens, 1), slacks(tokens, 0);
  std::vector<bool> may_be_clipped;
  if (!batch.rollout.old.empty()) may_be_clipped.resize(tokens);
  for (size_t t = 0; t < tokens; ++t) {
    if (counted[t] == 0) {
      labels[t] = kNoLabel;
    } else if (log_probs.size() != tokens && !may_be_clipped.empty()) {
      may_be_clipped[t] = true;
    } else if (!may_be_clipped.empty()) {
      const RolloutWeight right = WeightOf(batch, log_probs, t, all);
      weights[t] = right.weight;
      slacks[t] = right.slack;
      may_be_clipped[t] = right.may_be_clipped;
      if (right.weight == 0) labels[t] = kNoLabel;
    }
  }
  std::vector<Document> documents;
  size_t begin = 0;
  for (const int64_t length : batch.document_lengths) {
    const auto part = [&]<typename T>(const std::vector<T>& of_all) {
      if (of_all.empty()) return of_all;
      return std::vector<T>(of_all.begin() + begin, of_all.begin() + begin + length);
    };
    documents.push_back({.tokens = std::span(batch.input_ids).subspan(begin, length),
                         .labels = part(labels),
                         .weights = part(weights),
                         .slacks = part(slacks),
                         .may_be_clipped = part(may_be_clipped)});
    begin += length;
  }
  return documents;
}

bool MayBeClipped(const Document& expected, size_t t) {
  return !expected.may_be_clipped.empty() && expected.may_be_clipped[t];
}

std::vector<Document> SeenIn(const TrainedBatch& batch) {
  std::vector<Document> documents;
  size_t begin = 0;
  for (const int64_t length : batch.document_lengths) {
    const auto part = [&](const auto& all) {
      return std::vector(all.begin() + begin, all.begin() + begin + length);
    };
    documents.push_back({.tokens = std::span(batch.input_ids).subspan(begin, length),
                         .labels = part(batch.labels),
                         .weights = part(batch.weights)});
    begin += length;
  }
  return documents;
}

size_t CommonBeginning(std::span<const int64_t> a, std::span<const int64_t> b) {
  const size_t most = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + most, b.begin()).first - a.begin();
}

// How many tokens two documents have in common at their beginning or their end.
size_t Likeness(std::span<const int64_t> a, std::span<const int64_t> b) {
  const std::vector<int64_t> back(a.rbegin(), a.rend()), other_back(b.rbegin(), b.rend());
  return std::max(CommonBeginning(a, b), CommonBeginning(back, other_back));
}

// How a document that reached the model differs from one of the file.
std::string DifferenceOf(std::span<const int64_t> expected, std::span<const int64_t> seen) {
  const size_t same = CommonBeginning(expected, seen);
  if (same == seen.size())
    return absl::StrCat("its last ", expected.size() - same, " of ", expected.size(),
                        " tokens are missing");
  if (same == expected.size())
    return absl::StrCat(seen.size() - same, " tokens follow its ", expected.size());
  const size_t lost = expected.size() > seen.size() ? expected.size() - seen.size() : 0;
  if (lost > 0 && std::equal(seen.begin(), seen.end(), expected.begin() + lost))
    return absl::StrCat("its first ", lost, " of ", expected.size(), " tokens are missing");
  return absl::StrCat("its token ", same, " is ", seen[same], " instead of ", expected[same],
                      ", and ", seen.size(), " tokens came instead of ", expected.size());
}

// Why a document is another one than the file's, if that is where it was cut off; else empty.
std::string WhyCut(std::span<const int64_t> uncut, std::span<const int64_t> seen) {
  if (seen.size() >= uncut.size()) return "";
  const size_t lost = uncut.size() - seen.size();
  if (std::ranges::equal(uncut.first(seen.size()), seen))
    return absl::StrCat("it lost the last ", lost, " of its ", uncut.size(), " tokens");
  if (std::ranges::equal(uncut.last(seen.size()), seen))
    return absl::StrCat("it lost the first ", lost, " of its ", uncut.size(), " tokens");
  return "";
}

// Compares the documents of one step.
class StepData {
 public:
  // `documents`: of the kept ones, which `batch` has.
  StepData(size_t step, const PackedBatch& batch, std::span<const int64_t> documents,
           const ExpectedData& all, const StepTensors& seen)
      : name_(absl::StrCat("step ", step + 1)),
        expected_(ExpectedOf(batch, seen.log_probs, all)),
        is_rollout_(!batch.rollout.old.empty()),
        seen_(SeenIn(*seen.batch)),
        outside_(seen.batch->outside),
        partner_(expected_.size()) {
    const std::vector<int64_t> counted = batch.Counted();
    labels_ = std::accumulate(counted.begin(), counted.end(), int64_t{0});
    for (const int64_t document : documents) numbers_.push_back(all.numbers[document]);
    if (all.uncut) uncut_ = all.uncut->Of(documents);
    std::vector<bool> taken(seen_.size());
    for (size_t d = 0; d < expected_.size(); ++d) {
      for (size_t s = 0; s < seen_.size() && !partner_[d]; ++s) {
        if (taken[s] || !std::ranges::equal(expected_[d].tokens, seen_[s].tokens)) continue;
        partner_[d] = s;
        taken[s] = true;
      }
    }
    for (size_t s = 0; s < seen_.size(); ++s) {
      if (!taken[s]) strangers_.push_back(s);
    }
  }

  // How many places of the file's documents count.
  int64_t labels() const { return labels_; }

  void AddDocuments(std::vector<FailedPlace>& places) const {
    for (size_t d = 0; d < expected_.size(); ++d) {
      if (partner_[d]) continue;
      std::string what =
          absl::StrCat("document ", numbers_[d], " of the data file did not reach the model");
      if (const Document* like = MostLike(d)) what = Changed(d, *like);
      places.push_back({Place(d), absl::StrCat("in ", name_, ", ", what)});
    }
    if (places.empty() && !strangers_.empty())
      places.push_back({name_, absl::StrCat("in ", name_, ", ", strangers_.size(),
                                            " documents more than the data file has reached the "
                                            "model, the first of ",
                                            seen_[strangers_.front()].tokens.size(), " tokens")});
  }

  // Of a step that has documents which are none of the expected ones: what they are made of.
  void AddStrangers(std::vector<FailedPlace>& places) const {
    for (const size_t s : strangers_) {
      const std::optional<size_t> like = LikeSeen(seen_[s]);
      places.push_back(
          {name_, absl::StrCat("in ", name_, ", ",
                               like ? Changed(*like, seen_[s])
                                    : absl::StrCat(seen_[s].tokens.size(),
                                                   " tokens reached the model that are no document "
                                                   "of the data file"))});
    }
  }

  void AddLabels(std::vector<FailedPlace>& places) const {
    if (outside_ > 0)
      places.push_back({name_, absl::StrCat("in ", name_, ", ", outside_,
                                            " places are trained that belong to no document")});
    for (size_t d = 0; d < expected_.size(); ++d) {
      if (!partner_[d]) continue;
      const std::vector<int64_t>& right = expected_[d].labels;
      const std::vector<int64_t>& seen = seen_[*partner_[d]].labels;
      int64_t missing = 0, more = 0, other = 0;
      std::optional<size_t> first;
      for (size_t t = 0; t < right.size(); ++t) {
        if (right[t] == seen[t] || MayBeClipped(expected_[d], t)) continue;
        if (!first) first = t;
        (seen[t] == kNoLabel ? missing : right[t] == kNoLabel ? more : other) += 1;
      }
      if (!first) continue;
      const auto label = [](int64_t value) {
        return value == kNoLabel ? std::string("nothing") : absl::StrCat("token ", value);
      };
      const size_t last =
          std::ranges::find_if(right.rbegin(), right.rend(), IsLabel).base() - right.begin() - 1;
      const bool loses_end = missing == 1 && more + other == 0 && *first == last;
      places.push_back(
          {Place(d),
           absl::StrCat(
               "in ", name_, ", document ", numbers_[d], ": ",
               loses_end
                   ? std::string("its end token is not trained")
                   : absl::StrCat(missing, " labels are missing, ", more, " are too many, ", other,
                                  " are others; place ", *first, " of ", right.size(), " predicts ",
                                  label(seen[*first]), " instead of ", label(right[*first])))});
    }
  }

  void AddWeights(double share, std::vector<FailedPlace>& places) const {
    for (size_t d = 0; d < expected_.size(); ++d) {
      if (!partner_[d]) continue;
      const Document& seen = seen_[*partner_[d]];
      double worst = 0;
      size_t at = 0;
      for (size_t t = 0; t < seen.labels.size(); ++t) {
        if (expected_[d].labels[t] == kNoLabel) continue;
        if (MayBeClipped(expected_[d], t)) continue;
        const double right = share * expected_[d].weights[t];
        const double off =
            (std::abs(seen.weights[t] - right) - share * expected_[d].slacks[t]) / std::abs(right);
        if (std::isfinite(off) && off <= worst) continue;
        worst = std::isfinite(off) ? off : HUGE_VAL;
        at = t;
      }
      if (worst <= kWeightTolerance) continue;
      const char* why = is_rollout_ ? "that of the clipped loss at what was seen"
                                    : "one over all that count in the step";
      places.push_back(
          {Place(d), absl::StrFormat("in %s, document %d: the label of place %d has the weight "
                                     "%.4g instead of %.4g, %s",
                                     name_, numbers_[d], at, seen.weights[at],
                                     share * expected_[d].weights[at], why)});
    }
  }

 private:
  std::string Place(size_t document) const {
    return absl::StrCat(name_, ", document ", numbers_[document]);
  }
  std::string Changed(size_t document, const Document& seen) const {
    std::string why = WhyCut(Uncut(document), seen.tokens);
    if (why.empty()) why = DifferenceOf(expected_[document].tokens, seen.tokens);
    return absl::StrCat("document ", numbers_[document],
                        " of the data file reached the model changed: ", why);
  }
  // An expected document before it was cut off; empty if none was.
  std::vector<int64_t> Uncut(size_t document) const {
    if (uncut_.input_ids.empty()) return {};
    return uncut_.Of(std::array{static_cast<int64_t>(document)}).input_ids;
  }
  size_t LikenessOf(size_t document, const Document& seen) const {
    return std::max(Likeness(expected_[document].tokens, seen.tokens),
                    Likeness(Uncut(document), seen.tokens));
  }
  // Of those that are none of the file's.
  const Document* MostLike(size_t document) const {
    const Document* best = nullptr;
    size_t most = 0;
    for (const size_t s : strangers_) {
      const size_t alike = LikenessOf(document, seen_[s]);
      if (alike <= most) continue;
      most = alike;
      best = &seen_[s];
    }
    return best;
  }
  // The expected document that one which is none of the file's was made of.
  std::optional<size_t> LikeSeen(const Document& seen) const {
    std::optional<size_t> best;
    size_t most = 0;
    for (size_t d = 0; d < expected_.size(); ++d) {
      const size_t alike = LikenessOf(d, seen);
      if (alike <= most) continue;
      most = alike;
      best = d;
    }
    return best;
  }

  std::string name_;
  std::vector<Document> expected_;
  bool is_rollout_;
  int64_t labels_ = 0;
  std::vector<int64_t> numbers_;  // of these in the file
  PackedBatch uncut_;             // these before they were cut off; empty if none was
  std::vector<Document> seen_;
  int64_t outside_;                             // places that are trained and belong to no document
  std::vector<std::optional<size_t>> partner_;  // of each expected document in `seen_`
  std::vector<size_t> strangers_;               // that are none of the file's
};

std::vector<int64_t> AllDocuments(const ExpectedData& expected) {
  std::vector<int64_t> documents(expected.numbers.size());
  std::iota(documents.begin(), documents.end(), 0);
  return documents;
}

// The kept documents that a step has to have, in the order of its expected batch.
std::vector<int64_t> DocumentsIn(const ExpectedData& expected, size_t step) {
  if (expected.dealt.empty()) return AllDocuments(expected);
  std::vector<int64_t> documents = expected.dealt[step];
  std::sort(documents.begin(), documents.end());
  return documents;
}

// The weight of each of a step's labels on its rank. Where the gradients of ranks are averaged, it
// is as many times its part of the step as there are ranks; the gradients show whether they are.
double ShareOf(int64_t labels, const TrainedBatch& seen, int64_t data_ranks) {
  const double all = std::accumulate(seen.weights.begin(), seen.weights.end(), 0.0);
  const auto ranks = static_cast<double>(data_ranks);
  const double times = std::abs(all - ranks) < std::abs(all - 1) ? ranks : 1;
  return times / static_cast<double>(labels);
}

// What is wrong with how documents were dealt to the steps.
void AddDealing(const std::vector<StepTensors>& steps, const ExpectedData& expected,
                std::vector<FailedPlace>& places) {
  const std::vector<int64_t> all = AllDocuments(expected);
  for (size_t k = 0; k < expected.dealt.size(); ++k) {
    if (expected.dealt[k].empty())
      StepData(k, expected.kept, all, expected, steps[k]).AddStrangers(places);
  }
  if (!places.empty()) return;
  const auto in_the_file = [&](StepsOfRank steps) {
    for (std::vector<int64_t>& documents : steps) {
      for (int64_t& document : documents) document = expected.numbers[document];
    }
    return steps;
  };
  const auto kept = std::ssize(expected.kept.document_lengths);
  std::vector<StepsOfRank> of_ranks;
  for (const StepsOfRank& steps : expected.dealt_to_ranks) of_ranks.push_back(in_the_file(steps));
  const std::string why = of_ranks.empty()
                              ? WhyNotInEpochs(in_the_file(expected.dealt), kept,
                                               expected.documents_in_a_step, expected.drops_last)
                              : WhyNotInEpochsOfRanks(of_ranks, expected.numbers);
  if (!why.empty()) places.push_back({"epochs", why});
}

}  // namespace

CheckResult CheckData(const std::vector<StepTensors>& steps, const ExpectedData& expected) {
  std::vector<FailedPlace> documents, labels, weights;
  for (size_t k = 0; k < expected.steps.size(); ++k) {
    if (k >= steps.size() || !steps[k].batch)
      return CheckResult::Unseen(
          Stage::kForward,
          absl::StrCat("in step ", k + 1, " nobody saw the batch that the trainer made"));
    if (const double residual = steps[k].batch->residual; !(residual <= kMostResidual))
      return CheckResult::Unseen(
          Stage::kForward,
          absl::StrFormat(
              "in step %d the gradient of the logits is that of no cross entropy (it is "
              "off by %.2g of a label's weight): its labels cannot be read",
              k + 1, residual));
  }
  if (!expected.dealt.empty()) AddDealing(steps, expected, documents);
  int64_t counted = 0;
  for (size_t k = 0; documents.empty() && k < expected.steps.size(); ++k) {
    const StepData step(k, expected.steps[k], DocumentsIn(expected, k), expected, steps[k]);
    counted += step.labels();
    step.AddDocuments(documents);
    if (const PackedBatch& batch = expected.steps[k];
        documents.empty() && !batch.rollout.old.empty() &&
        steps[k].log_probs.size() != batch.input_ids.size())
      return CheckResult::Unseen(Stage::kForward,
                                 absl::StrCat("in step ", k + 1,
                                              " nobody saw the log-probs or values "
                                              "that the loss was computed from"));
    step.AddLabels(labels);
    step.AddWeights(ShareOf(step.labels(), *steps[k].batch, expected.data_ranks), weights);
  }
  Json facts = {{"steps", expected.steps.size()}, {"labels", counted}};
  if (!expected.dealt.empty()) facts["documents"] = expected.dealt;
  const std::pair<const char*, std::vector<FailedPlace>*> kinds[] = {
      {reason::kDocumentsOff, &documents},
      {reason::kLabelsOff, &labels},
      {reason::kLossWeightsOff, &weights}};
  for (const auto& [code, places] : kinds) {
    if (places->empty()) continue;
    const std::string message = places->front().what;
    return CheckResult::Failed(Stage::kForward, code, message, facts).At(std::move(*places));
  }
  return CheckResult::Passed(Stage::kForward, facts);
}

namespace {

// The kept documents before any is cut off; none if no limit cuts them.
std::optional<PackedBatch> UncutOf(const Probe& probe) {
  const absl::StatusOr<ModelShape> shape = ShapeOf(probe);
  if (probe.max_length == 0 || !shape.ok()) return std::nullopt;
  Probe uncut = probe;
  uncut.max_length = 0;
  uncut.truncation.clear();
  return KeptBatch(DrawConversations(uncut, *shape), uncut).Of(KeptDocuments(probe));
}

// What each rank said that it was dealt in each step; a step in which one said nothing has none.
std::vector<StepsOfRank> DealtToRanks(const CaseFile& file) {
  std::vector<StepsOfRank> ranks(file.probe().layout.ranks());
  for (const ObservedStep& step : file.seen().steps) {
    for (size_t r = 0; r < ranks.size(); ++r) {
      const bool is_known = r < step.of_ranks.size();
      ranks[r].push_back(is_known ? step.of_ranks[r].documents : std::vector<int64_t>());
    }
  }
  return ranks;
}

bool IsDrivenByATrainer(const CaseFile& file) {
  return OfFinishedCells(file) && file.probe().drive == "trainer";
}

CheckResult CheckDataOf(const CaseFile& file) {
  if (!file.steps.ok()) return CheckResult::Unreadable(Stage::kForward, file.steps.status());
  const auto& folder = file.reference().folder;
  if (!folder.ok()) return CheckResult::Unreadable(Stage::kForward, folder.status());
  // Of folders older than a choice of documents, every step has all.
  ExpectedData expected = {
      .kept = folder->kept.value_or(folder->steps.front()),
      .numbers = KeptDocuments(file.probe()),
      .steps = folder->steps,
      .drops_last = file.input.trainer_drops_last,
      .data_ranks = file.probe().layout.data_ranks(),
      .uncut = UncutOf(file.probe()),
      .of_values = file.probe().head == "value",
      .ppo = file.probe().ppo,
      .fraction_bits = file.probe().precision == "bf16" ? kBf16FractionBits : kFp32FractionBits};
  if (IsDealtByTrainer(file.probe())) {
    if (!IsPackedInRows(file.probe()))
      expected.documents_in_a_step = file.probe().global_batch_size;
    for (const ObservedStep& step : file.seen().steps) expected.dealt.push_back(step.documents);
    expected.dealt.resize(expected.steps.size());
    if (IsPackedInRows(file.probe()) && expected.data_ranks > 1)
      expected.dealt_to_ranks = DealtToRanks(file);
    const bool is_known = !file.probe().dealt.empty();  // else some step has no possible documents
    for (std::vector<int64_t>& documents : expected.dealt) {
      const bool is_possible = std::ranges::all_of(documents, [&](int64_t document) {
        return document >= 0 && document < std::ssize(expected.numbers);
      });
      if (!is_known && !is_possible) documents.clear();
    }
  }
  return CheckData(*file.steps, expected);
}

}  // namespace

extern const Claim kDataClaim = {
    .name = "data",
    .rung = Stage::kForward,
    .asked_by = "drive",
    .says =
        "the trainer gives the model every document of its data file once an epoch and trains "
        "what counts in it",
    .witness =
        "the tokens and documents of each training forward, and the labels and weights of "
        "the loss, read from the gradient of the logits; expected from the words of the "
        "data file and the chat template alone, without the tokenizer or a line of the "
        "trainer's",
    .cannot_see =
        "the order of documents, which is the trainer's; a weight that is off by less "
        "than 2 %, which the loss against the golden shows; a document that is never dealt, of a "
        "trainer that leaves out what fills no step at the end of an epoch; without being "
        "asked (max_length) those longer than a limit; and of an update on a roll-out, in bf16, a "
        "weight that is off by rounding of its log-prob or value, and whether a label is trained "
        "whose loss is within 0.001 and that rounding of being clipped",
    .applies = IsDrivenByATrainer,
    .check = CheckDataOf,
};

}  // namespace bkm
