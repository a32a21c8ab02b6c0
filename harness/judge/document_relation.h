// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_DOCUMENT_RELATION_H_
#define HARNESS_JUDGE_DOCUMENT_RELATION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/model/observation.h"
#include "harness/numerics/packed_batch.h"

namespace bkm {

// Which data-parallel rank has each document of a step's batch.
class DocumentsOfRanks {
 public:
  // nullopt if the ranks did not say it, or if the batch is not theirs.
  static std::optional<DocumentsOfRanks> Of(const std::vector<ObservedRank>& ranks, size_t step,
                                            const PackedBatch& batch);

  int64_t ranks() const { return ranks_; }
  int64_t RankOf(int64_t document) const { return of_document_[document]; }
  int64_t documents() const { return static_cast<int64_t>(of_document_.size()); }
  const PackedBatch& batch() const { return *batch_; }
  // The flat positions of a document's tokens: [begin, end).
  int64_t begin(int64_t document) const { return begins_[document]; }
  int64_t end(int64_t document) const { return begins_[document + 1]; }
  // Tokens that count in the loss.
  int64_t TokensOf(int64_t rank) const;

 private:
  const PackedBatch* batch_ = nullptr;
  int64_t ranks_ = 0;
  std::vector<int64_t> of_document_, begins_;
};

// "log-probs are wrong only in the documents of rank 1 of 2", if every document of one rank that
// has labels is further off than `allowed` on average, and no document of another rank is.
std::optional<std::string> DescribeLogProbs(const DocumentsOfRanks& documents,
                                            std::span<const double> seen,
                                            std::span<const double> golden, double allowed);

// A loss that follows from the cell's own log-probs in another way than asked: without the
// documents of a rank, or as the mean of the ranks' means. nullopt if the right way fits, too, or
// if several others do. `allowed`: absolute.
std::optional<std::string> DescribeLoss(const DocumentsOfRanks& documents, double loss,
                                        std::span<const double> log_probs, double allowed);

// Sampled elements of one tensor with a row for each token: the embedding or the head.
struct TokenRows {
  int64_t rows = 0, columns = 0;
  std::span<const int64_t> places;  // flat indices
  std::span<const double> seen, golden;
};

// How much each rank's documents count in the gradients: the factor between what was seen and the
// golden in the rows of tokens that no other rank has. The other rows' share in such a row, through
// the softmax, is small. nullopt if a rank with labels has too few such samples, if rounding
// (`floor`, relative) hides the answer, or if all ranks count alike.
std::optional<std::string> DescribeGradients(const DocumentsOfRanks& documents,
                                             const std::vector<TokenRows>& tensors, double floor);

// The rows of one step, whose documents are dealt as `documents` says.
struct StepRows {
  DocumentsOfRanks documents;
  std::vector<TokenRows> tensors;
};

// Whether each rank's shard of the rows counts that rank's documents alone, in all these steps
// together. nullopt if not, or if a shard has too few tokens of some rank.
std::optional<std::string> DescribeUnreduced(const std::vector<StepRows>& steps, double floor,
                                             int64_t shards);

}  // namespace bkm

#endif  // HARNESS_JUDGE_DOCUMENT_RELATION_H_
