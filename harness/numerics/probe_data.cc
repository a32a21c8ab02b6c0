// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/probe_data.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "harness/model/dealing.h"
#include "harness/numerics/conversations.h"
#include "harness/numerics/counter_generator.h"

namespace bkm {
namespace {

constexpr int64_t kPromptTokens = 3;
constexpr int64_t kTokensForAHole = 16;
constexpr int64_t kTokensPerHoleToken = 8;

int64_t OrdinaryToken(const ModelShape& shape, const CounterStream& stream, uint64_t index) {
  return kFirstOrdinaryToken + stream.Below(shape.vocabulary - kFirstOrdinaryToken, index);
}

// Any ordinary token but `old`: 1 to n - 1 steps around the circle of the n ordinary tokens. The
// few special ones stand before their first.
int64_t OtherToken(int64_t old, const ModelShape& shape, const CounterStream& stream,
                   uint64_t index) {
  const int64_t ordinary = shape.vocabulary - kFirstOrdinaryToken;
  const int64_t step = 1 + stream.Below(ordinary - 1, index);
  return kFirstOrdinaryToken + (old - kFirstOrdinaryToken + step + ordinary) % ordinary;
}

// 1 for each token of a document that counts in the loss: neither the prompt nor the hole, and
// always the eos. Nothing predicts the first token.
std::vector<int64_t> DrawLossMask(int64_t length, const CounterStream& stream, uint64_t document) {
  std::vector<int64_t> mask(length, 1);
  const int64_t prompt = std::max<int64_t>(1, std::min(kPromptTokens, length - 1));
  std::fill_n(mask.begin(), prompt, 0);
  if (length < kTokensForAHole) return mask;
  const int64_t hole = length / kTokensPerHoleToken;
  // At least one token of the first answer and the eos remain.
  const int64_t first = prompt + 1;
  std::fill_n(mask.begin() + first + stream.Below(length - hole - first, document), hole, 0);
  return mask;
}

int64_t StartOf(const PackedBatch& batch, int64_t document) {
  const auto lengths = batch.document_lengths.begin();
  return std::accumulate(lengths, lengths + document, int64_t{0});
}

}  // namespace

std::vector<float> DrawWeight(const WeightShape& weight, uint64_t seed) {
  std::vector<int64_t> indices(weight.numel());
  std::iota(indices.begin(), indices.end(), 0);
  return DrawWeightAt(weight, seed, indices);
}

std::vector<float> DrawWeightAt(const WeightShape& weight, uint64_t seed,
                                std::span<const int64_t> indices) {
  const CounterStream stream(seed, absl::StrCat("weight/", weight.name));
  std::vector<float> values(indices.size());
  for (size_t i = 0; i < values.size(); ++i) {
    // Rounding before adding the mean keeps compilers from fusing the two operations.
    const float noise =
        static_cast<float>(stream.NormalLike(weight.standard_deviation, indices[i]));
    values[i] = static_cast<float>(weight.mean + static_cast<double>(noise));
  }
  return values;
}

PackedBatch DrawBatch(const Probe& probe, const ModelShape& shape, int step) {
  if (probe.drive == "trainer")
    return KeptBatch(DrawConversations(probe, shape), probe).Of(DealtIn(probe, step));
  PackedBatch batch;
  batch.document_lengths = DocumentsOf(probe, step);
  const CounterStream stream(probe.seed, absl::StrCat("tokens/", step));
  const CounterStream holes(probe.seed, absl::StrCat("holes/", step));
  for (size_t document = 0; document < batch.document_lengths.size(); ++document) {
    const int64_t length = batch.document_lengths[document];
    const std::vector<int64_t> mask = DrawLossMask(length, holes, document);
    batch.loss_mask.insert(batch.loss_mask.end(), mask.begin(), mask.end());
    for (int64_t i = 0; i < length; ++i) {
      const bool last = i == length - 1;
      batch.input_ids.push_back(last ? kEosToken
                                     : OrdinaryToken(shape, stream, batch.input_ids.size()));
    }
  }
  return batch;
}

ReachTest DrawReachTest(const PackedBatch& batch, const ModelShape& shape, uint64_t seed) {
  ReachTest reach;
  reach.document = batch.document_lengths.size() > 1 ? 1 : 0;
  // In the middle, never the eos.
  reach.position =
      StartOf(batch, reach.document) + (batch.document_lengths[reach.document] - 1) / 2;
  reach.token = OtherToken(batch.input_ids[reach.position], shape, CounterStream(seed, "reach"), 0);
  return reach;
}

std::vector<TokenChange> DrawReaches(const PackedBatch& batch, const ModelShape& shape,
                                     uint64_t seed) {
  const std::vector<int64_t>& lengths = batch.document_lengths;
  std::set<int64_t> positions;
  const int64_t document = std::min<int64_t>(2, lengths.size() - 1);
  const int64_t start = StartOf(batch, document);
  for (const int64_t i : {int64_t{0}, (lengths[document] - 1) / 2, lengths[document] - 2}) {
    positions.insert(start + std::max<int64_t>(i, 0));
  }
  const auto longest = std::max_element(lengths.begin(), lengths.end());
  const int64_t window = shape.WindowOf(0);
  if (window > 0 && *longest > window) {
    const int64_t inside = StartOf(batch, longest - lengths.begin()) + *longest - window;
    positions.insert({inside - 1, inside});
  }
  const CounterStream stream(seed, "reaches");
  std::vector<TokenChange> reaches;
  for (const int64_t position : positions) {
    reaches.push_back(
        {position, OtherToken(batch.input_ids[position], shape, stream, reaches.size())});
  }
  return reaches;
}

std::vector<int64_t> DrawPlaces(const WeightShape& weight, uint64_t seed) {
  const int64_t numel = weight.numel();
  std::set<int64_t> places;
  if (numel <= weight.places) {
    for (int64_t i = 0; i < numel; ++i) places.insert(i);
  } else {
    const CounterStream stream(seed, absl::StrCat("places/", weight.name));
    for (uint64_t i = 0; static_cast<int64_t>(places.size()) < weight.places; ++i) {
      places.insert(stream.Below(numel, i));
    }
  }
  return {places.begin(), places.end()};
}

}  // namespace bkm
