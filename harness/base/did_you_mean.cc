// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/did_you_mean.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bkm {
namespace {

// Levenshtein distance.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

std::string DidYouMean(absl::string_view name, const std::vector<std::string>& known) {
  const std::string* best = nullptr;
  size_t best_distance = 0;
  for (const std::string& candidate : known) {
    const size_t distance = EditDistance(name, candidate);
    if (!best || distance < best_distance) best = &candidate, best_distance = distance;
  }
  if (best && best_distance <= std::max<size_t>(2, name.size() / 3)) {
    return absl::StrCat(": did you mean '", *best, "'?");
  }
  return absl::StrCat(" (known: ", absl::StrJoin(known, ", "), ")");
}

}  // namespace bkm
