// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_PACKED_BATCH_H_
#define HARNESS_NUMERICS_PACKED_BATCH_H_

#include <cstdint>
#include <span>
#include <vector>

namespace bkm {

// The packed batch of one step: documents one after another; positions restart in each.
struct PackedBatch {
  std::vector<int64_t> input_ids;
  std::vector<int64_t> loss_mask;  // 0 or 1 per token
  std::vector<int64_t> document_lengths;
  bool operator==(const PackedBatch&) const = default;

  // The positions that have a label: all but the last position of each document.
  std::vector<int64_t> JudgedPositions() const;

  // The mean of |a - b| over the judged positions. Both have a value per token.
  double MeanDifference(std::span<const double> a, std::span<const double> b) const;

  // The documents in up to `parts` groups of neighbours, of equal numbers as far as possible: the
  // lengths of each group's.
  std::vector<std::vector<int64_t>> Grouped(int parts) const;
};

// A reach test: replace the token at flat position `position` of step 0's batch by `token`.
struct TokenChange {
  int64_t position = 0;
  int64_t token = 0;
  bool operator==(const TokenChange&) const = default;
};

// The first reach test: replace the token at flat position `position` of this step's batch by
// `token` and see which log-probs move. The position is in the middle of `document`.
struct ReachTest {
  int step = 0;
  int64_t document = 0;
  int64_t position = 0;
  int64_t token = 0;
  bool operator==(const ReachTest&) const = default;
};

}  // namespace bkm

#endif  // HARNESS_NUMERICS_PACKED_BATCH_H_
