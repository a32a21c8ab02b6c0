// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/document_relation.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "harness/judge/numbers_check.h"

namespace bkm {
namespace {

// Fewer samples say nothing about a rank.
constexpr size_t kLeastSamples = 3;
// What the softmax over other ranks' tokens may add to a row, as a share of its gradient.
constexpr double kThroughSoftmax = 0.15;

std::string RankText(int64_t rank, int64_t ranks) {
  return absl::StrCat("rank ", rank, " of ", ranks);
}

std::string DocumentsText(const DocumentsOfRanks& documents, int64_t rank) {
  std::vector<int64_t> numbers;
  for (int64_t document = 0; document < documents.documents(); ++document) {
    if (documents.RankOf(document) == rank) numbers.push_back(document);
  }
  return absl::StrCat(numbers.size() == 1 ? "document " : "documents ",
                      absl::StrJoin(numbers, ", "));
}

// The rank whose documents have a token, by token; -1 for a token of several ranks.
std::map<int64_t, int64_t> OwnersOfTokens(const DocumentsOfRanks& documents) {
  std::map<int64_t, int64_t> owners;
  for (int64_t document = 0; document < documents.documents(); ++document) {
    for (int64_t t = documents.begin(document); t < documents.end(document); ++t) {
      const auto [it, is_new] =
          owners.emplace(documents.batch().input_ids[t], documents.RankOf(document));
      if (!is_new && it->second != documents.RankOf(document)) it->second = -1;
    }
  }
  return owners;
}

// How much documents count in sampled gradients.
struct Weight {
  size_t samples = 0;
  double product = 0, square = 0, seen_square = 0;
  void Add(double seen, double golden) {
    ++samples;
    product += seen * golden;
    square += golden * golden;
    seen_square += seen * seen;
  }
  void Add(const Weight& other) {
    samples += other.samples;
    product += other.product;
    square += other.square;
    seen_square += other.seen_square;
  }
  bool IsKnown() const { return samples >= kLeastSamples && square > 0 && std::isfinite(product); }
  double factor() const { return product / square; }
  // The part of what was seen that no factor explains, relative to the golden.
  double off() const {
    return std::sqrt(std::max(0.0, seen_square / square - factor() * factor()));
  }
};

// The weight of each rank's documents in each shard of the rows: [shard][rank].
std::vector<std::vector<Weight>> WeightsOfRanks(const DocumentsOfRanks& documents,
                                                const std::vector<TokenRows>& tensors,
                                                int64_t shards) {
  const std::map<int64_t, int64_t> owners = OwnersOfTokens(documents);
  std::vector<std::vector<Weight>> weights(shards, std::vector<Weight>(documents.ranks()));
  for (const TokenRows& tensor : tensors) {
    const size_t size = tensor.places.size();
    if (tensor.columns < 1 || tensor.seen.size() != size || tensor.golden.size() != size) continue;
    const int64_t each = (tensor.rows + shards - 1) / shards;
    for (size_t i = 0; i < size; ++i) {
      const int64_t row = tensor.places[i] / tensor.columns;
      const auto owner = owners.find(row);
      if (owner != owners.end() && owner->second >= 0 && row < tensor.rows)
        weights[row / each][owner->second].Add(tensor.seen[i], tensor.golden[i]);
    }
  }
  return weights;
}

}  // namespace

std::optional<DocumentsOfRanks> DocumentsOfRanks::Of(const std::vector<ObservedRank>& ranks,
                                                     size_t step, const PackedBatch& batch) {
  DocumentsOfRanks documents;
  documents.batch_ = &batch;
  documents.begins_ = {0};
  for (const int64_t length : batch.document_lengths)
    documents.begins_.push_back(documents.begins_.back() + length);
  documents.of_document_.assign(batch.document_lengths.size(), -1);
  for (const ObservedRank& rank : ranks) {
    documents.ranks_ = std::max(documents.ranks_, rank.data_ranks);
    if (step >= rank.documents.size() || rank.data_rank < 0) return std::nullopt;
    const ObservedShare& share = rank.documents[step];
    for (int64_t i = 0; i < share.count; ++i) {
      const int64_t document = share.first + i;
      if (document < 0 || document >= documents.documents()) return std::nullopt;
      int64_t& of = documents.of_document_[document];
      if (of >= 0 && of != rank.data_rank) return std::nullopt;
      of = rank.data_rank;
    }
  }
  const auto& of = documents.of_document_;
  const bool is_whole =
      std::all_of(of.begin(), of.end(),
                  [&](int64_t rank) { return rank >= 0 && rank < documents.ranks_; }) &&
      documents.begins_.back() == static_cast<int64_t>(batch.input_ids.size()) &&
      batch.loss_mask.size() == batch.input_ids.size();
  // A cell can claim any number of ranks.
  const bool is_known = documents.ranks_ > 1 && documents.ranks_ <= std::ssize(ranks);
  return is_whole && is_known ? std::optional(documents) : std::nullopt;
}

int64_t DocumentsOfRanks::TokensOf(int64_t rank) const {
  int64_t tokens = 0;
  const std::vector<int64_t> counted = batch_->Counted();
  for (int64_t document = 0; document < documents(); ++document) {
    if (RankOf(document) != rank) continue;
    for (int64_t t = begin(document); t < end(document); ++t) tokens += counted[t];
  }
  return tokens;
}

std::optional<std::string> DescribeLogProbs(const DocumentsOfRanks& documents,
                                            std::span<const double> seen,
                                            std::span<const double> golden, double allowed) {
  if (seen.size() != golden.size() || seen.size() != documents.batch().input_ids.size())
    return std::nullopt;
  std::vector<int> wrong(documents.ranks()), right(documents.ranks());
  for (int64_t document = 0; document < documents.documents(); ++document) {
    const int64_t labels = documents.end(document) - documents.begin(document) - 1;
    if (labels < 1) continue;
    double sum = 0;
    for (int64_t t = documents.begin(document); t + 1 < documents.end(document); ++t)
      sum += std::abs(seen[t] - golden[t]);
    ++(sum <= allowed * static_cast<double>(labels) ? right : wrong)[documents.RankOf(document)];
  }
  std::optional<int64_t> only;
  int right_elsewhere = 0;
  for (int64_t rank = 0; rank < documents.ranks(); ++rank) {
    if (wrong[rank] == 0) {
      right_elsewhere += right[rank];
      continue;
    }
    if (only || right[rank] > 0) return std::nullopt;
    only = rank;
  }
  if (!only || right_elsewhere == 0) return std::nullopt;
  return absl::StrCat("log-probs are wrong only in the documents of ",
                      RankText(*only, documents.ranks()), " (", DocumentsText(documents, *only),
                      ")");
}

std::optional<std::string> DescribeLoss(const DocumentsOfRanks& documents, double loss,
                                        std::span<const double> log_probs, double allowed) {
  const PackedBatch& batch = documents.batch();
  if (log_probs.size() != batch.input_ids.size() || !std::isfinite(loss)) return std::nullopt;
  const std::vector<int64_t> counted = batch.Counted();
  std::vector<double> sums(documents.ranks());
  std::vector<int64_t> tokens(documents.ranks());
  double sum = 0, count = 0;
  for (int64_t document = 0; document < documents.documents(); ++document) {
    const int64_t rank = documents.RankOf(document);
    for (int64_t t = documents.begin(document); t < documents.end(document); ++t) {
      if (counted[t]) sums[rank] -= log_probs[t];
    }
  }
  for (int64_t rank = 0; rank < documents.ranks(); ++rank) {
    tokens[rank] = documents.TokensOf(rank);
    sum += sums[rank];
    count += static_cast<double>(tokens[rank]);
  }
  if (count == 0 || std::abs(loss - sum / count) <= allowed) return std::nullopt;
  // An answer that is near the right one could be so by rounding.
  const auto fits = [&](double other) {
    return std::abs(loss - other) <= allowed && std::abs(other - sum / count) > 3 * allowed;
  };
  std::vector<std::string> found;
  for (int64_t rank = 0; rank < documents.ranks(); ++rank) {
    const std::string whose = absl::StrCat("the documents of ", RankText(rank, documents.ranks()),
                                           " (", DocumentsText(documents, rank), ")");
    if (fits((sum - sums[rank]) / count))
      found.push_back(absl::StrCat("the loss is that of the batch without ", whose));
    const double rest = count - static_cast<double>(tokens[rank]);
    if (rest > 0 && fits((sum - sums[rank]) / rest))
      found.push_back(absl::StrCat("the loss is the mean over the batch without ", whose));
  }
  double means = 0;
  for (int64_t rank = 0; rank < documents.ranks(); ++rank) {
    if (tokens[rank] > 0) means += sums[rank] / static_cast<double>(tokens[rank]);
  }
  if (fits(means / static_cast<double>(documents.ranks())))
    found.emplace_back(
        "the loss is the mean of the ranks' own means: each rank divides by its own tokens");
  return found.size() == 1 ? std::optional(found[0]) : std::nullopt;
}

std::optional<std::string> DescribeGradients(const DocumentsOfRanks& documents,
                                             const std::vector<TokenRows>& tensors, double floor) {
  const double allowed = kThroughSoftmax + kFloorMultiple * floor;
  const std::vector<Weight> weights = WeightsOfRanks(documents, tensors, 1)[0];
  double all = 0, least = INFINITY, most = 0;
  for (int64_t rank = 0; rank < documents.ranks(); ++rank) {
    if (documents.TokensOf(rank) == 0) continue;
    if (!weights[rank].IsKnown()) return std::nullopt;
    all += static_cast<double>(documents.TokensOf(rank));
    least = std::min(least, weights[rank].factor());
    most = std::max(most, weights[rank].factor());
  }
  // Alike, or nearer to each other than the rows of other tokens tell.
  if (!(most > 0) || most - least <= 2 * allowed * most) return std::nullopt;
  std::vector<std::string> parts;
  std::optional<int64_t> missing;
  bool divides_alone = true;
  for (int64_t rank = 0; rank < documents.ranks(); ++rank) {
    const auto tokens = static_cast<double>(documents.TokensOf(rank));
    if (tokens == 0) continue;
    // The other ranks' tokens add up to `allowed` of their own weight to each row.
    if (weights[rank].off() > allowed * most) return std::nullopt;
    const double factor = weights[rank].factor();
    const double alone = all / tokens / static_cast<double>(documents.ranks());
    divides_alone &= std::abs(factor - alone) <= allowed * std::max(alone, 1.0);
    if (std::abs(factor) <= allowed * most) missing = rank;
    parts.push_back(absl::StrFormat("%.2f for %s", std::abs(factor) < 0.005 ? 0 : factor,
                                    RankText(rank, documents.ranks())));
  }
  const std::string numbers = absl::StrCat(
      "in the rows of tokens that only one rank has, gradients are this many times the golden: ",
      absl::StrJoin(parts, ", "));
  if (divides_alone) return absl::StrCat("each rank divides its loss by its own tokens: ", numbers);
  if (missing && parts.size() > 1)
    return absl::StrCat("the gradients lack the documents of ",
                        RankText(*missing, documents.ranks()), " (",
                        DocumentsText(documents, *missing), "): ", numbers);
  return absl::StrCat("the ranks' documents do not count alike: ", numbers);
}

std::optional<std::string> DescribeUnreduced(const std::vector<StepRows>& steps, double floor,
                                             int64_t shards) {
  if (shards < 2 || steps.empty()) return std::nullopt;
  const double allowed = kThroughSoftmax + kFloorMultiple * floor;
  std::vector<std::vector<Weight>> weights(shards, std::vector<Weight>(shards));
  for (const StepRows& step : steps) {
    if (step.documents.ranks() != shards) return std::nullopt;
    const auto of_step = WeightsOfRanks(step.documents, step.tensors, shards);
    for (int64_t shard = 0; shard < shards; ++shard) {
      for (int64_t rank = 0; rank < shards; ++rank) weights[shard][rank].Add(of_step[shard][rank]);
    }
  }
  double own = 0;
  for (int64_t shard = 0; shard < shards; ++shard) {
    for (const Weight& weight : weights[shard]) {
      if (!weight.IsKnown()) return std::nullopt;
    }
    const Weight& mine = weights[shard][shard];
    if (mine.factor() < 0.5 || mine.off() > allowed * mine.factor()) return std::nullopt;
    own = std::max(own, mine.factor());
  }
  for (int64_t shard = 0; shard < shards; ++shard) {
    for (int64_t rank = 0; rank < shards; ++rank) {
      const Weight& weight = weights[shard][rank];
      const bool is_lacking =
          std::abs(weight.factor()) <= allowed * own && weight.off() <= allowed * own;
      if (shard != rank && !is_lacking) return std::nullopt;
    }
  }
  return absl::StrCat(
      "in the rows of tokens that only one rank has, each rank's shard of the gradients counts "
      "that rank's documents alone: gradients are not reduced over the group of ",
      shards);
}

}  // namespace bkm
