// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/rank_story.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "harness/base/json_facts.h"

namespace bkm {
namespace {

constexpr size_t kShown = 20;

// "documents 0 to 2, then 0 to 1"
std::string DocumentsText(const Json& rank) {
  std::vector<std::string> steps;
  for (const Json& share : ListOf(rank, "documents")) {
    if (steps.size() == kShown) break;
    const int64_t first = WholeOf(share, "first").value_or(0);
    const int64_t count = WholeOf(share, "count").value_or(0);
    steps.push_back(count == 0   ? "none"
                    : count == 1 ? absl::StrCat(first)
                                 : absl::StrCat(first, " to ", first + count - 1));
  }
  return steps.empty() ? "" : absl::StrCat(", documents ", absl::StrJoin(steps, ", then "));
}

}  // namespace

std::string RankStory(const Json& observation) {
  const Json& ranks = ListOf(observation, "ranks");
  if (ranks.empty()) return "";
  std::string out;
  for (size_t i = 0; i < ranks.size() && i < kShown; ++i) {
    const Json& rank = ranks[i];
    const std::string waits = TextOf(rank, "waits");
    const std::string exception = TextOf(rank, "exception");
    absl::StrAppend(&out, "  rank ", WholeOf(rank, "rank").value_or(0), ": ",
                    TextOf(rank, "ended", "not seen"), waits.empty() ? "" : " ", waits, " at ",
                    TextOf(rank, "stage"), DocumentsText(rank), exception.empty() ? "" : ": ",
                    exception, "\n");
  }
  const Json& differences = ListOf(observation, "rank_differences");
  for (size_t i = 0; i < differences.size() && i < kShown; ++i) {
    const Json& one = differences[i];
    const std::optional<double> largest = FiniteOf(one, "largest");
    absl::StrAppend(&out, "  ", TextOf(one, "when"), ": rank ", WholeOf(one, "rank").value_or(0),
                    " has another ", TextOf(one, "name"),
                    largest ? absl::StrFormat(" (largest difference %.3g)", *largest) : "", "\n");
  }
  size_t shown = 0;
  for (const Json& one : ListOf(ranks[0], "collectives")) {
    if (TextOf(one, "stage") == "witness") continue;  // bkm's own
    if (shown++ == 0) absl::StrAppend(&out, "  collectives of the first rank:\n");
    if (shown > kShown) break;
    const std::string reduce = TextOf(one, "reduce");
    const std::string stage = TextOf(one, "stage");
    const std::string dtype = TextOf(one, "dtype");
    absl::StrAppend(
        &out, "    ", TextOf(one, "op"), reduce.empty() ? "" : " ", reduce, " over ",
        WholeOf(one, "ranks").value_or(0), " ranks", dtype.empty() ? "" : absl::StrCat(", ", dtype),
        ": ", WholeOf(one, "calls").value_or(0), " calls, ", WholeOf(one, "elements").value_or(0),
        " elements", stage.empty() ? "" : absl::StrCat(", in ", stage), "\n");
  }
  return out;
}

}  // namespace bkm
