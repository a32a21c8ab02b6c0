// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/reach_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bkm {
namespace {

// Flat positions that changed, with the size of each change.
std::map<int64_t, double> Moved(const ObservedReach& reach, double noise) {
  std::map<int64_t, double> moved;
  for (size_t i = 0; i < reach.moved.size(); ++i) {
    const double size = i < reach.largest.size() ? reach.largest[i] : 0;
    if (noise > 0 && size <= noise) continue;
    // A change to or from NaN or infinity counts as the largest possible one.
    moved[reach.moved[i]] = std::isfinite(size) ? size : std::numeric_limits<double>::max();
  }
  return moved;
}

// The end of the positions in its document that a change at `position` may reach.
int64_t ReachEnd(int64_t position, int64_t document, const AskedMasks& asked) {
  const int64_t end = asked.documents.end(document);
  int64_t last = position;
  for (int64_t window : asked.windows) {
    if (window <= 0) return end;
    last += window - 1;
  }
  return asked.windows.empty() ? end : std::min(end, last + 1);
}

// The positions that a change must not reach and did.
struct Leak {
  int64_t past = 0;                      // earlier positions of the same document
  int64_t beyond = 0;                    // later positions, beyond all windows
  std::map<int64_t, int64_t> documents;  // other document -> positions moved in it
  int64_t outside = 0;                   // padding after the batch
  double largest = 0;
  bool empty() const { return past + beyond + outside == 0 && documents.empty(); }
};

// Where the label of a row's last position is the changed token, because engines take labels by
// rolling a row; -1 if the token is the first of none.
int64_t RolledLabel(int64_t changed, const AskedMasks& asked) {
  if (asked.rows.empty()) return changed > 0 ? -1 : asked.documents.tokens() - 1;
  for (const auto& [first, count] : asked.rows) {
    if (count > 0 && asked.documents.begin(first) == changed)
      return asked.documents.end(first + count - 1) - 1;
  }
  return -1;
}

Leak FindLeak(const std::map<int64_t, double>& moved, int64_t changed, const AskedMasks& asked) {
  const int64_t own = asked.documents.DocumentOf(changed);
  const int64_t end = ReachEnd(changed, own, asked);
  const int64_t rolled = RolledLabel(changed, asked);
  Leak leak;
  for (const auto& [position, size] : moved) {
    const int64_t document = asked.documents.DocumentOf(position);
    const bool is_label = asked.has_labels && (position == changed - 1 || position == rolled);
    if (is_label || (document == own && changed <= position && position < end)) continue;
    if (size <= asked.rounding && asked.rounding > 0) continue;
    if (document < 0)
      ++leak.outside;
    else if (document != own)
      ++leak.documents[document];
    else
      ++(position < changed ? leak.past : leak.beyond);
    leak.largest = std::max(leak.largest, size);
  }
  return leak;
}

struct ReachFinding {
  const char* reason;
  std::string message;
};

// Names the kind of mask that would cause the leak.
ReachFinding Describe(const Leak& leak, int64_t position, int64_t own) {
  std::vector<std::string> parts;
  bool earlier = false, later = false;
  for (const auto& [document, count] : leak.documents) {
    (document < own ? earlier : later) = true;
    parts.push_back(absl::StrCat(count, " positions of document ", document));
  }
  if (leak.past > 0)
    parts.push_back(absl::StrCat(leak.past, " earlier positions of its own document"));
  if (leak.beyond > 0)
    parts.push_back(absl::StrCat(leak.beyond, " positions beyond the windows of all layers"));
  if (leak.outside > 0)
    parts.push_back(absl::StrCat(leak.outside, " positions outside all documents"));
  const bool future = earlier || leak.past > 0;
  ReachFinding finding = {reason::kMaskLeak, "documents see each other"};
  if (future && leak.documents.empty()) {
    finding = {reason::kMaskFuture, "tokens see the future"};
  } else if (future && later) {
    finding.message = "everything sees everything";
  } else if (leak.documents.empty() && leak.outside == 0) {
    finding = {reason::kWindowTooWide, "tokens see further back than any window"};
  }
  absl::StrAppend(&finding.message, ": changing token ", position, " of document ", own, " moves ",
                  absl::StrJoin(parts, ", "));
  return finding;
}

Json LeakEvidence(const Leak& leak, Json evidence) {
  std::map<std::string, int64_t> leaked;
  for (const auto& [document, count] : leak.documents)
    leaked[absl::StrCat("document ", document)] = count;
  if (leak.past > 0) leaked["own past"] = leak.past;
  if (leak.beyond > 0) leaked["beyond windows"] = leak.beyond;
  if (leak.outside > 0) leaked["outside"] = leak.outside;
  evidence["leaked"] = leaked;
  evidence["largest_leak"] = leak.largest;
  return evidence;
}

// Checks that enough of the positions that must change did.
CheckResult CheckLength(const std::map<int64_t, double>& moved, int64_t changed,
                        const AskedMasks& asked, Json evidence) {
  const int64_t own = asked.documents.DocumentOf(changed);
  const int64_t end =
      std::min(ReachEnd(changed, own, asked), asked.documents.end(own) - asked.has_labels);
  int64_t expected = 0, seen = 0;
  for (int64_t position = changed; position < end; ++position) {
    ++expected;
    seen += moved.contains(position);
  }
  evidence["reach"] = {{"moved", seen}, {"of", expected}};
  // Position changed - 1 says nothing about the mask: only another token's logit is read there, and
  // in bf16 two logits of one position are equal every few hundred times.
  std::string message;
  if (expected > 0 && !moved.contains(changed)) {
    message = absl::StrCat("changing token ", changed, " does not move its own log-prob");
  } else if (static_cast<double>(seen) < kMinReach * static_cast<double>(expected)) {
    message = absl::StrCat("changing token ", changed, " moves only ", seen, " of the ", expected,
                           " later positions of its document");
  } else {
    return CheckResult::Passed(Stage::kMask, std::move(evidence));
  }
  return CheckResult::Failed(Stage::kMask, reason::kMaskShort, std::move(message),
                             std::move(evidence));
}

}  // namespace

CheckResult CheckReach(const ObservedReach& reach, const AskedMasks& asked) {
  const int64_t own = asked.documents.DocumentOf(reach.position);
  const std::map<int64_t, double> moved = Moved(reach, asked.noise);
  Json evidence = {{"position", reach.position}, {"moved", moved.size()}};
  if (own < 0) {
    return CheckResult::Unseen(
        Stage::kMask,
        absl::StrCat("the reach test changed position ", reach.position, ", outside the batch"),
        std::move(evidence));
  }
  const Leak leak = FindLeak(moved, reach.position, asked);
  if (leak.empty()) return CheckLength(moved, reach.position, asked, std::move(evidence));
  ReachFinding finding = Describe(leak, reach.position, own);
  return CheckResult::Failed(Stage::kMask, finding.reason, std::move(finding.message),
                             LeakEvidence(leak, std::move(evidence)));
}

}  // namespace bkm
