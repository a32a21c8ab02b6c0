// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/mask_check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bkm {
namespace {

struct Span {
  int64_t begin = 0;
  int64_t end = 0;
  bool Has(int64_t position) const { return begin <= position && position < end; }
};

std::vector<Span> Documents(std::span<const int64_t> lengths) {
  std::vector<Span> documents;
  int64_t begin = 0;
  for (int64_t length : lengths) {
    documents.push_back({begin, begin + length});
    begin += length;
  }
  return documents;
}

int64_t DocumentOf(const std::vector<Span>& documents, int64_t position) {
  for (size_t d = 0; d < documents.size(); ++d) {
    if (documents[d].Has(position)) return static_cast<int64_t>(d);
  }
  return -1;
}

// Where a change leaked to.
struct Leak {
  std::vector<int64_t> past;             // earlier positions of the same document
  std::map<int64_t, int64_t> documents;  // other document -> positions moved in it
  int64_t outside = 0;                   // beyond the batch (padding)
  double largest = 0;
  bool empty() const { return past.empty() && documents.empty() && outside == 0; }
};

Leak FindLeak(const ObservedReach& reach, const std::vector<Span>& documents, int64_t own) {
  Leak leak;
  for (size_t i = 0; i < reach.moved.size(); ++i) {
    const int64_t position = reach.moved[i];
    const int64_t document = DocumentOf(documents, position);
    if (document == own && position >= reach.position - 1) continue;
    if (document == own)
      leak.past.push_back(position);
    else if (document < 0)
      ++leak.outside;
    else
      ++leak.documents[document];
    if (i < reach.largest.size() && std::isfinite(reach.largest[i]))
      leak.largest = std::max(leak.largest, reach.largest[i]);
  }
  return leak;
}

// In words, with the mask that would do this.
std::string Describe(const Leak& leak, int64_t position, int64_t own) {
  std::vector<std::string> parts;
  bool earlier = false, later = false;
  for (const auto& [document, count] : leak.documents) {
    (document < own ? earlier : later) = true;
    parts.push_back(absl::StrCat(count, " positions of document ", document));
  }
  if (!leak.past.empty())
    parts.push_back(absl::StrCat(leak.past.size(), " earlier positions of its own document"));
  if (leak.outside > 0) parts.push_back(absl::StrCat(leak.outside, " positions of no document"));
  const bool future = earlier || !leak.past.empty();
  absl::string_view what = "documents see each other";
  if (future && !later && leak.documents.empty()) what = "tokens see the future";
  if (future && later) what = "everything sees everything";
  return absl::StrCat(what, ": changing token ", position, " of document ", own, " moves ",
                      absl::StrJoin(parts, ", "));
}

Json Evidence(const Observation& observation, std::span<const int64_t> document_lengths) {
  std::map<std::string, int64_t> types;
  std::set<std::string> digests;
  for (const ObservedMaskCall& call : observation.mask_calls) {
    ++types[call.type];
    digests.insert(call.digest);
  }
  Json evidence = {{"types", types}, {"different_masks", digests.size()}};
  // A causal mask inside each document has n (n + 1) / 2 pairs per document; more say where to
  // look.
  int64_t expected = 0;
  for (int64_t length : document_lengths) expected += length * (length + 1) / 2;
  for (const ObservedMaskCall& call : observation.mask_calls) {
    if (!call.pairs || *call.pairs == expected) continue;
    evidence["pairs"] = {{"layer", call.layer}, {"seen", *call.pairs}, {"expected", expected}};
    break;
  }
  if (observation.reach) {
    evidence["position"] = observation.reach->position;
    evidence["moved"] = observation.reach->moved.size();
  }
  return evidence;
}

bool NoMaskReachedTheLayers(const Observation& observation) {
  return !observation.mask_calls.empty() &&
         std::all_of(observation.mask_calls.begin(), observation.mask_calls.end(),
                     [](const ObservedMaskCall& call) { return call.type == "NoneType"; });
}

// Positions that must move, and how many of them did.
CheckResult CheckReach(const ObservedReach& reach, const Span& own, Json evidence) {
  const std::set<int64_t> moved(reach.moved.begin(), reach.moved.end());
  int64_t expected = 0, seen = 0;
  for (int64_t position = reach.position; position < own.end - 1; ++position) {
    ++expected;
    seen += moved.contains(position);
  }
  evidence["reach"] = {{"moved", seen}, {"of", expected}};
  const bool has_label = reach.position > own.begin;
  if ((has_label && !moved.contains(reach.position - 1)) ||
      (expected > 0 && !moved.contains(reach.position))) {
    return CheckResult::Failed(
        Stage::kMask, reason::kMaskShort,
        absl::StrCat("changing token ", reach.position, " does not even move its own log-probs"),
        std::move(evidence));
  }
  if (static_cast<double>(seen) < kMinReach * static_cast<double>(expected)) {
    return CheckResult::Failed(
        Stage::kMask, reason::kMaskShort,
        absl::StrCat("changing token ", reach.position, " moves only ", seen, " of the ", expected,
                     " later positions of its document"),
        std::move(evidence));
  }
  return CheckResult::Passed(Stage::kMask, std::move(evidence));
}

}  // namespace

CheckResult CheckMask(const Observation& observation, std::span<const int64_t> document_lengths) {
  Json evidence = Evidence(observation, document_lengths);
  if (!observation.reach) {
    return CheckResult::Unseen(Stage::kMask, "the reach test was not run, or its result was lost",
                               std::move(evidence));
  }
  const ObservedReach& reach = *observation.reach;
  const std::vector<Span> documents = Documents(document_lengths);
  const int64_t own = DocumentOf(documents, reach.position);
  if (own < 0) {
    return CheckResult::Unseen(
        Stage::kMask,
        absl::StrCat("the reach test changed position ", reach.position, ", outside the batch"),
        std::move(evidence));
  }
  const Leak leak = FindLeak(reach, documents, own);
  if (leak.empty()) return CheckReach(reach, documents[own], std::move(evidence));
  std::map<std::string, int64_t> leaked;
  for (const auto& [document, count] : leak.documents)
    leaked[absl::StrCat("document ", document)] = count;
  if (!leak.past.empty()) leaked["own past"] = static_cast<int64_t>(leak.past.size());
  if (leak.outside > 0) leaked["outside"] = leak.outside;
  evidence["leaked"] = leaked;
  evidence["largest_leak"] = leak.largest;
  const bool missing = NoMaskReachedTheLayers(observation);
  return CheckResult::Failed(Stage::kMask, missing ? reason::kMaskMissing : reason::kMaskLeak,
                             absl::StrCat(missing ? "no mask reached the layers, and " : "",
                                          Describe(leak, reach.position, own)),
                             std::move(evidence));
}

}  // namespace bkm
