// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Attention of packed documents, forward and backward, without torch. `Stored` is the type in
// memory (bf16 or fp16 in the registered op), `Real` the type of all arithmetic. Rows and columns
// are visited in one fixed order, so a result depends on neither threads nor other documents.
//
//   s_j = scale * q . k_j      p_j = exp(s_j - L),  L = log sum_j exp(s_j)      o = sum_j p_j v_j
// and, with g = dLoss/do and D = g . o (Dao, FlashAttention-2, section 2.3.2):
//   dv_j += p_j g      ds_j = p_j (g . v_j - D)      dq += scale ds_j k_j      dk_j += scale ds_j q
#ifndef HARNESS_KERNELS_VARLEN_ATTENTION_H_
#define HARNESS_KERNELS_VARLEN_ATTENTION_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "harness/kernels/varlen_shape.h"

namespace bkm {

template <typename Stored, typename Real>
struct VarlenForwardTensors {
  const Stored* query;
  const Stored* key;
  const Stored* value;
  Stored* output;   // [total queries, query_heads, value_dim]; every row of every document
  Real* logsumexp;  // [query_heads, total queries]; +infinity where a query sees no key
};

template <typename Stored, typename Real>
struct VarlenBackwardTensors {
  const Stored* output_gradient;
  const Stored* query;
  const Stored* key;
  const Stored* value;
  const Stored* output;
  const Real* logsumexp;
  Stored* query_gradient;
  Stored* key_gradient;
  Stored* value_gradient;
};

// Rows [first, first + rows) of one head of a [tokens, heads, head_dim] tensor, widened to Real.
template <typename Stored, typename Real>
inline void LoadHead(const Stored* tensor, int64_t heads, int64_t head, int64_t first, int64_t rows,
                     int64_t head_dim, std::vector<Real>& out) {
  out.resize(rows * head_dim);
  for (int64_t row = 0; row < rows; ++row) {
    const Stored* from = tensor + ((first + row) * heads + head) * head_dim;
    Real* to = out.data() + row * head_dim;
    for (int64_t x = 0; x < head_dim; ++x) to[x] = static_cast<Real>(from[x]);
  }
}

template <typename Stored, typename Real>
inline void StoreHead(const std::vector<Real>& rows, int64_t heads, int64_t head, int64_t first,
                      int64_t head_dim, Stored* tensor) {
  const int64_t count = static_cast<int64_t>(rows.size()) / head_dim;
  for (int64_t row = 0; row < count; ++row) {
    const Real* from = rows.data() + row * head_dim;
    Stored* to = tensor + ((first + row) * heads + head) * head_dim;
    for (int64_t x = 0; x < head_dim; ++x) to[x] = static_cast<Stored>(from[x]);
  }
}

template <typename Real>
inline Real Dot(const Real* a, const Real* b, int64_t size) {
  Real sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t x = 0; x < size; ++x) sum += a[x] * b[x];
  return sum;
}

template <typename Real>
inline void AddScaled(Real factor, const Real* from, int64_t size, Real* to) {
#pragma omp simd
  for (int64_t x = 0; x < size; ++x) to[x] += factor * from[x];
}

// One query row against the rows [keys.begin, keys.end) of key and value. Returns the row's
// logsumexp; `scores` is scratch of at least keys.end.
template <typename Real>
inline Real AttendRow(const Real* query, const Real* key, const Real* value, KeyRange keys,
                      int64_t head_dim, int64_t value_dim, Real scale, Real* scores, Real* output) {
  for (int64_t x = 0; x < value_dim; ++x) output[x] = 0;
  if (keys.end <= keys.begin) return std::numeric_limits<Real>::infinity();
  Real largest = -std::numeric_limits<Real>::infinity();
  for (int64_t j = keys.begin; j < keys.end; ++j) {
    scores[j] = scale * Dot(query, key + j * head_dim, head_dim);
    if (scores[j] > largest) largest = scores[j];
  }
  // If all scores are -infinity or NaN, the result is NaN, as it should be.
  Real sum = 0;
  for (int64_t j = keys.begin; j < keys.end; ++j) {
    const Real weight = std::exp(scores[j] - largest);
    sum += weight;
    AddScaled(weight, value + j * value_dim, value_dim, output);
  }
  const Real inverse = 1 / sum;
  for (int64_t x = 0; x < value_dim; ++x) output[x] *= inverse;
  return largest + std::log(sum);
}

// One query head of one document.
template <typename Stored, typename Real>
inline void VarlenForwardHead(const VarlenShape& shape,
                              const VarlenForwardTensors<Stored, Real>& tensors, int64_t document,
                              int64_t head) {
  const int64_t dim = shape.head_dim, value_dim = shape.value_dim;
  const int64_t queries = shape.Queries(document);
  const int64_t first = shape.query_offsets[document], first_key = shape.key_offsets[document];
  const int64_t keys = shape.Keys(document), key_head = head / shape.GroupSize();
  std::vector<Real> query, key, value;
  LoadHead(tensors.query, shape.query_heads, head, first, queries, dim, query);
  LoadHead(tensors.key, shape.key_heads, key_head, first_key, keys, dim, key);
  LoadHead(tensors.value, shape.key_heads, key_head, first_key, keys, value_dim, value);
  std::vector<Real> scores(keys), output(queries * value_dim);
  Real* logsumexp = tensors.logsumexp + head * shape.total_queries + first;
  for (int64_t i = 0; i < queries; ++i) {
    logsumexp[i] = AttendRow(
        query.data() + i * dim, key.data(), value.data(), shape.VisibleKeys(document, i), dim,
        value_dim, static_cast<Real>(shape.scale), scores.data(), output.data() + i * value_dim);
  }
  StoreHead(output, shape.query_heads, head, first, value_dim, tensors.output);
}

// One key head of one document with all query heads that share it. The gradients of key and value
// are summed in Real, in the order of the heads.
template <typename Stored, typename Real>
inline void VarlenBackwardKeyHead(const VarlenShape& shape,
                                  const VarlenBackwardTensors<Stored, Real>& tensors,
                                  int64_t document, int64_t key_head) {
  const int64_t dim = shape.head_dim, value_dim = shape.value_dim;
  const int64_t queries = shape.Queries(document);
  const int64_t first = shape.query_offsets[document], first_key = shape.key_offsets[document];
  const int64_t keys = shape.Keys(document);
  const Real scale = static_cast<Real>(shape.scale);
  std::vector<Real> query, key, value, output, gradient, query_gradient;
  LoadHead(tensors.key, shape.key_heads, key_head, first_key, keys, dim, key);
  LoadHead(tensors.value, shape.key_heads, key_head, first_key, keys, value_dim, value);
  std::vector<Real> key_gradient(keys * dim), value_gradient(keys * value_dim);
  const int64_t group = shape.GroupSize();
  for (int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
    LoadHead(tensors.query, shape.query_heads, head, first, queries, dim, query);
    LoadHead(tensors.output, shape.query_heads, head, first, queries, value_dim, output);
    LoadHead(tensors.output_gradient, shape.query_heads, head, first, queries, value_dim, gradient);
    query_gradient.assign(queries * dim, 0);
    const Real* logsumexp = tensors.logsumexp + head * shape.total_queries + first;
    for (int64_t i = 0; i < queries; ++i) {
      const Real *q = query.data() + i * dim, *g = gradient.data() + i * value_dim;
      const Real mean = Dot(g, output.data() + i * value_dim, value_dim);  // D
      const KeyRange visible = shape.VisibleKeys(document, i);
      for (int64_t j = visible.begin; j < visible.end; ++j) {
        const Real* k = key.data() + j * dim;
        const Real weight = std::exp(scale * Dot(q, k, dim) - logsumexp[i]);
        const Real slope =
            scale * weight * (Dot(g, value.data() + j * value_dim, value_dim) - mean);
        AddScaled(slope, k, dim, query_gradient.data() + i * dim);
        AddScaled(slope, q, dim, key_gradient.data() + j * dim);
        AddScaled(weight, g, value_dim, value_gradient.data() + j * value_dim);
      }
    }
    StoreHead(query_gradient, shape.query_heads, head, first, dim, tensors.query_gradient);
  }
  StoreHead(key_gradient, shape.key_heads, key_head, first_key, dim, tensors.key_gradient);
  StoreHead(value_gradient, shape.key_heads, key_head, first_key, value_dim,
            tensors.value_gradient);
}

}  // namespace bkm

#endif  // HARNESS_KERNELS_VARLEN_ATTENTION_H_
