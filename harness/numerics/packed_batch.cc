// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/packed_batch.h"

namespace bkm {

std::vector<int64_t> PackedBatch::JudgedPositions() const {
  std::vector<int64_t> positions;
  int64_t start = 0;
  for (const int64_t length : document_lengths) {
    for (int64_t i = 0; i + 1 < length; ++i) positions.push_back(start + i);
    start += length;
  }
  return positions;
}

}  // namespace bkm
