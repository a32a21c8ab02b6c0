// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/probe_data.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "harness/numerics/counter_generator.h"

namespace bkm {
namespace {

constexpr int64_t kPromptTokens = 3;
constexpr int64_t kPlaces = 256;

int64_t OrdinaryToken(const ModelShape& shape, const CounterStream& stream, uint64_t index) {
  return kFirstOrdinaryToken + stream.Below(shape.vocabulary - kFirstOrdinaryToken, index);
}

}  // namespace

std::vector<float> DrawWeight(const WeightShape& weight, uint64_t seed) {
  const CounterStream stream(seed, absl::StrCat("weight/", weight.name));
  std::vector<float> values(weight.numel());
  for (size_t i = 0; i < values.size(); ++i) {
    // Rounded before the mean is added, so that no compiler can fuse the two operations.
    const float noise = static_cast<float>(stream.NormalLike(weight.standard_deviation, i));
    values[i] = static_cast<float>(weight.mean + static_cast<double>(noise));
  }
  return values;
}

PackedBatch DrawBatch(const Probe& probe, const ModelShape& shape, int step) {
  PackedBatch batch;
  batch.document_lengths = probe.documents;
  std::rotate(batch.document_lengths.begin(),
              batch.document_lengths.begin() + step % batch.document_lengths.size(),
              batch.document_lengths.end());
  const CounterStream stream(probe.seed, absl::StrCat("tokens/", step));
  for (const int64_t length : batch.document_lengths) {
    // Every document keeps at least its eos in the loss.
    const int64_t prompt = std::min(kPromptTokens, length - 1);
    for (int64_t i = 0; i < length; ++i) {
      const bool last = i == length - 1;
      batch.input_ids.push_back(last ? kEosToken
                                     : OrdinaryToken(shape, stream, batch.input_ids.size()));
      batch.loss_mask.push_back(i < prompt ? 0 : 1);
    }
  }
  return batch;
}

ReachTest DrawReachTest(const PackedBatch& batch, const ModelShape& shape, uint64_t seed) {
  ReachTest reach;
  reach.document = batch.document_lengths.size() > 1 ? 1 : 0;
  const auto lengths = batch.document_lengths.begin();
  const int64_t start = std::accumulate(lengths, lengths + reach.document, int64_t{0});
  reach.position = start + (lengths[reach.document] - 1) / 2;  // never the eos
  // Any other ordinary token: a step of 1 to n - 1 around the circle of the n ordinary ones.
  const int64_t ordinary = shape.vocabulary - kFirstOrdinaryToken;
  const int64_t step = 1 + CounterStream(seed, "reach").Below(ordinary - 1, 0);
  const int64_t old = batch.input_ids[reach.position] - kFirstOrdinaryToken;
  reach.token = kFirstOrdinaryToken + (old + step) % ordinary;
  return reach;
}

std::vector<int64_t> DrawPlaces(const WeightShape& weight, uint64_t seed) {
  const int64_t numel = weight.numel();
  std::set<int64_t> places;
  if (numel <= kPlaces) {
    for (int64_t i = 0; i < numel; ++i) places.insert(i);
  } else {
    const CounterStream stream(seed, absl::StrCat("places/", weight.name));
    for (uint64_t i = 0; static_cast<int64_t>(places.size()) < kPlaces; ++i) {
      places.insert(stream.Below(numel, i));
    }
  }
  return {places.begin(), places.end()};
}

}  // namespace bkm
