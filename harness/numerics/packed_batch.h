// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_PACKED_BATCH_H_
#define HARNESS_NUMERICS_PACKED_BATCH_H_

#include <cstdint>
#include <vector>

namespace bkm {

// The packed batch of one step: documents one after the other, positions restart in each.
struct PackedBatch {
  std::vector<int64_t> input_ids;
  std::vector<int64_t> loss_mask;  // 0 or 1 per token
  std::vector<int64_t> document_lengths;
  bool operator==(const PackedBatch&) const = default;

  // The positions that have a label: all but the last of each document.
  std::vector<int64_t> JudgedPositions() const;
};

// Put `token` at flat position `position` of step 0's batch.
struct TokenChange {
  int64_t position = 0;
  int64_t token = 0;
  bool operator==(const TokenChange&) const = default;
};

// The mask witness: put `token` at flat position `position` of this step's batch and see which
// log-probs move. It is in the middle of `document`.
struct ReachTest {
  int step = 0;
  int64_t document = 0;
  int64_t position = 0;
  int64_t token = 0;
  bool operator==(const ReachTest&) const = default;
};

}  // namespace bkm

#endif  // HARNESS_NUMERICS_PACKED_BATCH_H_
