// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_KERNELS_VARLEN_SHAPE_H_
#define HARNESS_KERNELS_VARLEN_SHAPE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace bkm {

// Rows [begin, end) of a document's keys; empty when end <= begin.
struct KeyRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const KeyRange&) const = default;
};

// Packed documents: query is [total queries, query_heads, head_dim], key [total keys, key_heads,
// head_dim], value [total keys, key_heads, value_dim], all contiguous. Document d owns the query
// rows [query_offsets[d], query_offsets[d + 1]) and likewise the key rows.
struct VarlenShape {
  std::vector<int64_t> query_offsets;  // documents + 1 entries, not decreasing
  std::vector<int64_t> key_offsets;
  int64_t total_queries = 0;  // rows of query; the last document may end earlier
  int64_t query_heads = 1;
  int64_t key_heads = 1;  // divides query_heads; each serves query_heads / key_heads query heads
  int64_t head_dim = 1;
  int64_t value_dim = 1;
  double scale = 1;           // multiplies the scores before the softmax
  int64_t window_left = -1;   // how many keys before its own a query sees; -1: all
  int64_t window_right = -1;  // how many keys after its own; 0: causal; -1: all

  int64_t Documents() const { return static_cast<int64_t>(query_offsets.size()) - 1; }
  int64_t Queries(int64_t document) const {
    return query_offsets[document + 1] - query_offsets[document];
  }
  int64_t Keys(int64_t document) const { return key_offsets[document + 1] - key_offsets[document]; }
  int64_t GroupSize() const { return query_heads / key_heads; }

  // The keys that query row `query` (counted in its document) may see. If a document has more keys
  // than queries, or fewer, its end is aligned: the last query's own key is the last key, as in
  // FlashAttention 2.1.
  KeyRange VisibleKeys(int64_t document, int64_t query) const {
    const int64_t keys = Keys(document);
    const int64_t own = query + keys - Queries(document);
    return {window_left < 0 ? 0 : std::max<int64_t>(0, own - window_left),
            window_right < 0 ? keys : std::min(keys, own + window_right + 1)};
  }
};

}  // namespace bkm

#endif  // HARNESS_KERNELS_VARLEN_SHAPE_H_
