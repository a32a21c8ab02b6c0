// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/packed_batch.h"

#include <algorithm>
#include <cmath>

namespace bkm {

PackedBatch PackedBatch::Of(std::span<const int64_t> documents) const {
  std::vector<int64_t> begins = {0};
  for (const int64_t length : document_lengths) begins.push_back(begins.back() + length);
  PackedBatch chosen;
  for (const int64_t document : documents) {
    const int64_t begin = begins[document], end = begins[document + 1];
    chosen.input_ids.insert(chosen.input_ids.end(), input_ids.begin() + begin,
                            input_ids.begin() + end);
    chosen.loss_mask.insert(chosen.loss_mask.end(), loss_mask.begin() + begin,
                            loss_mask.begin() + end);
    chosen.document_lengths.push_back(end - begin);
    if (!after.empty()) chosen.after.push_back(after[document]);
    if (rollout.old.empty()) continue;
    const auto append = [&](const std::vector<float>& from, std::vector<float>& to) {
      to.insert(to.end(), from.begin() + begin, from.begin() + end);
    };
    append(rollout.old, chosen.rollout.old);
    append(rollout.credit, chosen.rollout.credit);
  }
  return chosen;
}

std::vector<int64_t> PackedBatch::Labels() const {
  std::vector<int64_t> labels(input_ids.size(), kNoLabel);
  int64_t start = 0;
  for (size_t document = 0; document < document_lengths.size(); ++document) {
    const int64_t last = start + document_lengths[document] - 1;
    std::copy(input_ids.begin() + start + 1, input_ids.begin() + last + 1, labels.begin() + start);
    if (!after.empty()) labels[last] = after[document];
    start = last + 1;
  }
  return labels;
}

std::vector<int64_t> PackedBatch::Counted() const {
  const std::vector<int64_t> labels = Labels();
  std::vector<int64_t> counted(labels.size());
  int64_t last = -1;
  for (const int64_t length : document_lengths) {
    for (int64_t t = last + 1; t < last + length; ++t) counted[t] = loss_mask[t + 1];
    last += length;
    counted[last] = labels[last] != kNoLabel;
  }
  return counted;
}

std::vector<int64_t> PackedBatch::JudgedPositions() const {
  const int64_t unlabelled = after.empty() ? 1 : 0;
  std::vector<int64_t> positions;
  int64_t start = 0;
  for (const int64_t length : document_lengths) {
    for (int64_t i = 0; i < length - unlabelled; ++i) positions.push_back(start + i);
    start += length;
  }
  return positions;
}

double PackedBatch::MeanDifference(std::span<const double> a, std::span<const double> b) const {
  const std::vector<int64_t> judged = JudgedPositions();
  double sum = 0;
  for (const int64_t t : judged) sum += std::abs(a[t] - b[t]);
  return sum / static_cast<double>(judged.size());
}

std::vector<std::vector<int64_t>> PackedBatch::Grouped(int parts) const {
  const int64_t documents = std::ssize(document_lengths);
  const int64_t groups = std::clamp<int64_t>(parts, 1, documents);
  std::vector<std::vector<int64_t>> grouped(groups);
  for (int64_t i = 0; i < documents; ++i)
    grouped[i * groups / documents].push_back(document_lengths[i]);
  return grouped;
}

}  // namespace bkm
