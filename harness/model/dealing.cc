// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/dealing.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"

namespace bkm {

bool IsDealtByTrainer(const Probe& probe) {
  return probe.drive == "trainer" && probe.global_batch_size > 0;
}

bool IsPackedInRows(const Probe& probe) { return probe.data == "single"; }

std::vector<int64_t> KeptDocuments(const Probe& probe) {
  const std::vector<int64_t>& lengths = probe.documents.front();
  std::vector<int64_t> kept;
  for (int64_t d = 0; d < std::ssize(lengths); ++d) {
    if (probe.truncation == "drop" && lengths[d] > probe.max_length) continue;
    kept.push_back(d);
  }
  return kept;
}

std::vector<int64_t> KeptLengths(const Probe& probe) {
  std::vector<int64_t> lengths;
  for (const int64_t document : KeptDocuments(probe)) {
    const int64_t length = probe.documents.front()[document];
    lengths.push_back(probe.max_length > 0 ? std::min(length, probe.max_length) : length);
  }
  return lengths;
}

std::vector<int64_t> DealtIn(const Probe& probe, int step) {
  if (!probe.dealt.empty()) return probe.dealt[step];
  const int64_t kept = std::ssize(KeptDocuments(probe));
  const int64_t size = IsDealtByTrainer(probe) ? std::min(probe.global_batch_size, kept) : kept;
  std::vector<int64_t> documents(size);
  std::iota(documents.begin(), documents.end(), size == 0 ? 0 : step % (kept / size) * size);
  return documents;
}

int64_t MicroBatchesOf(const Probe& probe, int64_t documents) {
  if (!IsDealtByTrainer(probe) || IsPackedInRows(probe) || documents == 0)
    return probe.micro_batches;
  const int64_t parts = int64_t{probe.micro_batches} * probe.layout.data_ranks();
  const int64_t size = std::max<int64_t>(1, probe.global_batch_size / parts);
  documents /= probe.layout.data_ranks();
  return std::min<int64_t>(probe.micro_batches, (documents + size - 1) / size);
}

Probe AsDealt(const Probe& probe, const Observation& seen) {
  if (!IsDealtByTrainer(probe) || std::ssize(seen.steps) != probe.steps) return probe;
  const std::vector<int64_t> lengths = KeptLengths(probe);
  // Rows may have a document of two epochs.
  const int64_t most = IsPackedInRows(probe)
                           ? probe.global_batch_size * probe.max_length
                           : std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  Probe dealt = probe;
  for (const ObservedStep& step : seen.steps) {
    std::vector<int64_t> documents = step.documents;
    std::sort(documents.begin(), documents.end());
    if (documents.empty() || documents.front() < 0 || documents.back() >= std::ssize(lengths))
      return probe;
    int64_t tokens = 0;
    for (const int64_t document : documents) tokens += lengths[document];
    if (tokens > most) return probe;
    dealt.dealt.push_back(std::move(documents));
  }
  return dealt;
}

std::string WhyNotInEpochs(const std::vector<std::vector<int64_t>>& steps, int64_t kept,
                           int64_t size, bool drops_last) {
  std::set<int64_t> had;  // in this epoch
  const auto left = [&] { return kept - static_cast<int64_t>(had.size()); };
  for (size_t k = 0; k < steps.size(); ++k) {
    const auto count = static_cast<int64_t>(steps[k].size());
    const std::string step = absl::StrCat("step ", k + 1);
    if (left() == 0 || (drops_last && left() < size)) had.clear();
    const int64_t most = size == 0 ? count : std::min(size, left());
    if (count == 0 || count != most)
      return absl::StrCat(step, " has ", count, " documents instead of ",
                          std::max<int64_t>(most, 1));
    for (const int64_t document : steps[k]) {
      if (size == 0 && left() == 0) had.clear();
      if (had.insert(document).second) continue;
      return absl::StrCat(step, " has document ", document, " again before ", left(),
                          " others came once");
    }
  }
  return "";
}

std::string WhyNotInEpochsOfRanks(const std::vector<StepsOfRank>& ranks,
                                  const std::vector<int64_t>& kept) {
  std::map<int64_t, size_t> owners;  // of documents
  bool has_each_begun_again = true;  // every rank
  for (size_t r = 0; r < ranks.size(); ++r) {
    std::set<int64_t> own;
    int64_t dealt = 0;
    for (const std::vector<int64_t>& documents : ranks[r]) {
      own.insert(documents.begin(), documents.end());
      dealt += std::ssize(documents);
    }
    for (const int64_t document : own) {
      const auto [owner, is_new] = owners.emplace(document, r);
      if (!is_new)
        return absl::StrCat("document ", document, " was dealt to rank ", owner->second,
                            " and to rank ", r);
    }
    const std::string why = WhyNotInEpochs(ranks[r], std::ssize(own), /*size=*/0,
                                           /*drops_last=*/false);
    if (!why.empty()) return absl::StrCat("on rank ", r, ", ", why);
    has_each_begun_again = has_each_begun_again && dealt > std::ssize(own);
  }
  for (const int64_t document : kept) {
    if (has_each_begun_again && !owners.contains(document))
      return absl::StrCat("document ", document,
                          " was dealt to no rank, and each has begun a second epoch");
  }
  return "";
}

}  // namespace bkm
