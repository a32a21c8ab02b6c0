// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_PACKED_BATCH_H_
#define HARNESS_NUMERICS_PACKED_BATCH_H_

#include <cstdint>
#include <span>
#include <vector>

namespace bkm {

inline constexpr int64_t kNoLabel = -1;

// The packed batch of one step: documents one after another; positions restart in each.
struct PackedBatch {
  std::vector<int64_t> input_ids;
  std::vector<int64_t> loss_mask;  // 0 or 1 per token
  std::vector<int64_t> document_lengths;
  // The token that each document's last position predicts, which counts in the loss and is no
  // input, of rows whose labels were shifted before they were packed. Empty: nothing is predicted
  // there.
  std::vector<int64_t> after;
  // Of a roll-out (Probe::objective "ppo"), for each token: [T] the log-prob with which it was
  // drawn, or a critic's value before it, in `old`; its advantage, or the return, in `credit`. The
  // tokens that do not count have some, too. Empty without a roll-out.
  struct Rollout {
    std::vector<float> old;
    std::vector<float> credit;
    bool operator==(const Rollout&) const = default;
  };
  Rollout rollout = {};
  bool operator==(const PackedBatch&) const = default;

  // The batch of these documents, one after another.
  PackedBatch Of(std::span<const int64_t> documents) const;

  // [T] The token that each position predicts; kNoLabel if none.
  std::vector<int64_t> Labels() const;
  // [T] 1 where the label counts in the loss, else 0.
  std::vector<int64_t> Counted() const;
  // The positions that have a label.
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
