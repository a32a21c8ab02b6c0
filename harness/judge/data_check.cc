// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/data_check.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/judge/case_file.h"
#include "harness/judge/claims.h"
#include "harness/judge/reasons.h"

namespace bkm {
namespace {

bool IsLabel(int64_t label) { return label != kNoLabel; }

struct Document {
  std::span<const int64_t> tokens;
  std::vector<int64_t> labels;  // [tokens]; kNoLabel where nothing is trained
  std::vector<double> weights;  // [tokens]
};

std::vector<Document> ExpectedOf(const PackedBatch& batch) {
  std::vector<int64_t> labels = batch.Labels();
  const std::vector<int64_t> counted = batch.Counted();
  for (size_t t = 0; t < labels.size(); ++t) {
    if (counted[t] == 0) labels[t] = kNoLabel;
  }
  std::vector<Document> documents;
  size_t begin = 0;
  for (const int64_t length : batch.document_lengths) {
    documents.push_back({.tokens = std::span(batch.input_ids).subspan(begin, length),
                         .labels = {labels.begin() + begin, labels.begin() + begin + length}});
    begin += length;
  }
  return documents;
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

// Compares the documents of one step.
class StepData {
 public:
  StepData(size_t step, const PackedBatch& expected, const TrainedBatch& seen)
      : name_(absl::StrCat("step ", step + 1)),
        expected_(ExpectedOf(expected)),
        seen_(SeenIn(seen)),
        partner_(expected_.size()) {
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

  // How many places of the file's documents have one.
  int64_t labels() const {
    int64_t count = 0;
    for (const Document& document : expected_)
      count += std::ranges::count_if(document.labels, IsLabel);
    return count;
  }

  void AddDocuments(std::vector<FailedPlace>& places) const {
    for (size_t d = 0; d < expected_.size(); ++d) {
      if (partner_[d]) continue;
      std::string what = absl::StrCat("document ", d, " of the data file did not reach the model");
      if (const Document* like = MostLike(expected_[d]))
        what = absl::StrCat("document ", d, " of the data file reached the model changed: ",
                            DifferenceOf(expected_[d].tokens, like->tokens));
      places.push_back({Place(d), absl::StrCat("in ", name_, ", ", what)});
    }
    if (places.empty() && !strangers_.empty())
      places.push_back({name_, absl::StrCat("in ", name_, ", ", strangers_.size(),
                                            " documents more than the data file has reached the "
                                            "model, the first of ",
                                            seen_[strangers_.front()].tokens.size(), " tokens")});
  }

  void AddLabels(std::vector<FailedPlace>& places) const {
    for (size_t d = 0; d < expected_.size(); ++d) {
      if (!partner_[d]) continue;
      const std::vector<int64_t>& right = expected_[d].labels;
      const std::vector<int64_t>& seen = seen_[*partner_[d]].labels;
      int64_t missing = 0, more = 0, other = 0;
      std::optional<size_t> first;
      for (size_t t = 0; t < right.size(); ++t) {
        if (right[t] == seen[t]) continue;
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
               "in ", name_, ", document ", d, ": ",
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
        const double off = std::abs(seen.weights[t] / share - 1);
        if (std::isfinite(off) && off <= worst) continue;
        worst = std::isfinite(off) ? off : HUGE_VAL;
        at = t;
      }
      if (worst <= kWeightTolerance) continue;
      places.push_back(
          {Place(d), absl::StrFormat("in %s, document %d: the label of place %d has the weight "
                                     "%.4g instead of %.4g, one over all that count in the step",
                                     name_, d, at, seen.weights[at], share)});
    }
  }

 private:
  std::string Place(size_t document) const { return absl::StrCat(name_, ", document ", document); }
  // Of those that are none of the file's.
  const Document* MostLike(const Document& document) const {
    const Document* best = nullptr;
    size_t most = 0;
    for (const size_t s : strangers_) {
      const std::span<const int64_t> tokens = seen_[s].tokens;
      const size_t front = CommonBeginning(document.tokens, tokens);
      const std::vector<int64_t> back(document.tokens.rbegin(), document.tokens.rend());
      const std::vector<int64_t> other_back(tokens.rbegin(), tokens.rend());
      const size_t alike = std::max(front, CommonBeginning(back, other_back));
      if (alike <= most) continue;
      most = alike;
      best = &seen_[s];
    }
    return best;
  }

  std::string name_;
  std::vector<Document> expected_, seen_;
  std::vector<std::optional<size_t>> partner_;  // of each expected document in `seen_`
  std::vector<size_t> strangers_;               // that are none of the file's
};

}  // namespace

CheckResult CheckData(const std::vector<StepTensors>& steps,
                      const std::vector<PackedBatch>& expected) {
  std::vector<FailedPlace> documents, labels, weights;
  int64_t counted = 0;
  for (size_t k = 0; k < expected.size(); ++k) {
    if (k >= steps.size() || !steps[k].batch)
      return CheckResult::Unseen(
          Stage::kForward,
          absl::StrCat("in step ", k + 1, " nobody saw the batch that the trainer made"));
    const StepData step(k, expected[k], *steps[k].batch);
    counted += step.labels();
    step.AddDocuments(documents);
    step.AddLabels(labels);
    step.AddWeights(1.0 / static_cast<double>(step.labels()), weights);
  }
  const Json facts = {{"steps", expected.size()}, {"labels", counted}};
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

bool IsDrivenByATrainer(const CaseFile& file) {
  return OfFinishedCells(file) && file.probe().drive == "trainer";
}

CheckResult CheckDataOf(const CaseFile& file) {
  if (!file.steps.ok()) return CheckResult::Unreadable(Stage::kForward, file.steps.status());
  if (!file.reference().folder.ok())
    return CheckResult::Unreadable(Stage::kForward, file.reference().folder.status());
  return CheckData(*file.steps, file.reference().folder->steps);
}

}  // namespace

extern const Claim kDataClaim = {
    .name = "data",
    .rung = Stage::kForward,
    .asked_by = "drive",
    .says =
        "the trainer gives the model every document of its data file once a step and trains "
        "what counts in it",
    .witness =
        "the tokens and documents of each training forward, and the labels and weights of "
        "the loss, read from the gradient of the logits; expected from the words of the "
        "data file and the chat template alone, without the tokenizer or a line of the "
        "trainer's",
    .cannot_see =
        "the order of documents, which is the trainer's; a weight that is off by less "
        "than 2 %, which the loss against the golden shows; documents longer than the "
        "limit, and a second epoch that differs from the first",
    .applies = IsDrivenByATrainer,
    .check = CheckDataOf,
};

}  // namespace bkm
