// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// What CUDA's kernels do with the lengths that they are told. The arithmetic here reads a
// document's length from the offsets alone, so a wrong maximum changes nothing; on a GPU it changes
// the result.
#ifndef HARNESS_KERNELS_VARLEN_ARGUMENTS_H_
#define HARNESS_KERNELS_VARLEN_ARGUMENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "harness/kernels/varlen_shape.h"

namespace bkm {

struct VarlenLengths {
  int64_t max_queries = 0;
  int64_t max_keys = 0;
  int64_t query_rows = 0;  // of the tensors, whatever the offsets cover
  int64_t key_rows = 0;
};

// An argument with which a GPU computes something else.
struct VarlenDifference {
  std::string argument;
  std::string what;
};

inline void AddShortMaximum(const char* name, const char* loss, int64_t maximum,
                            const std::vector<int64_t>& offsets,
                            std::vector<VarlenDifference>& differences) {
  for (size_t i = 1; i < offsets.size(); ++i) {
    const int64_t length = offsets[i] - offsets[i - 1];
    if (length <= maximum) continue;
    differences.push_back({name, std::string(name) + " is " + std::to_string(maximum) +
                                     ", but document " + std::to_string(i - 1) + " has " +
                                     std::to_string(length) + " tokens: " + loss});
    return;
  }
}

inline void AddUncovered(const char* name, int64_t rows, const std::vector<int64_t>& offsets,
                         std::vector<VarlenDifference>& differences) {
  if (offsets.front() == 0 && offsets.back() == rows) return;
  differences.push_back({name, std::string(name) + " runs from " + std::to_string(offsets.front()) +
                                   " to " + std::to_string(offsets.back()) + " and there are " +
                                   std::to_string(rows) +
                                   " tokens: a GPU leaves the other rows as allocated"});
}

// The launch covers max_queries rows of each document forward, and max_keys rows of each document's
// key and value gradients. A window that is not below max_keys is dropped.
inline std::vector<VarlenDifference> DifferencesOnGpu(const VarlenShape& shape,
                                                      const VarlenLengths& lengths) {
  std::vector<VarlenDifference> differences;
  AddShortMaximum("max_q", "a GPU does not compute the rest", lengths.max_queries,
                  shape.query_offsets, differences);
  AddShortMaximum("max_k", "a GPU gives the rest no gradient", lengths.max_keys, shape.key_offsets,
                  differences);
  AddUncovered("cu_seqlens_q", lengths.query_rows, shape.query_offsets, differences);
  AddUncovered("cu_seqlens_k", lengths.key_rows, shape.key_offsets, differences);
  return differences;
}

}  // namespace bkm

#endif  // HARNESS_KERNELS_VARLEN_ARGUMENTS_H_
