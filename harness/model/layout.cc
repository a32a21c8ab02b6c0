// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/layout.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "harness/base/did_you_mean.h"

namespace bkm {
namespace {

constexpr char kOneRank[] = "1";

absl::Status Malformed(absl::string_view text, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("layout '", text, "': ", what));
}

}  // namespace

const std::vector<LayoutDimension>& LayoutDimensions() {
  static const auto& dimensions =
      *new std::vector<LayoutDimension>{{"dp_replicate", &Layout::dp_replicate},
                                        {"dp_shard", &Layout::dp_shard},
                                        {"tp", &Layout::tp},
                                        {"cp", &Layout::cp},
                                        {"pp", &Layout::pp},
                                        {"ep", &Layout::ep},
                                        {"ulysses", &Layout::ulysses}};
  return dimensions;
}

std::string LayoutText(const Layout& layout) {
  std::vector<std::string> parts;
  for (const LayoutDimension& dimension : LayoutDimensions()) {
    const int degree = layout.*dimension.degree;
    if (degree > 1) parts.push_back(absl::StrCat(dimension.name, "=", degree));
  }
  return parts.empty() ? kOneRank : absl::StrJoin(parts, "+");
}

absl::StatusOr<Layout> ParseLayout(absl::string_view text) {
  Layout layout;
  if (text == kOneRank) return layout;
  std::vector<std::string> known;
  for (const LayoutDimension& dimension : LayoutDimensions()) known.push_back(dimension.name);
  std::set<std::string> seen;
  for (const absl::string_view part : absl::StrSplit(text, '+')) {
    const std::vector<std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (pair.size() != 2)
      return Malformed(text, "write dp_shard=2, or dp_shard=2+tp=2; 1 means one rank");
    const auto dimension =
        std::find_if(LayoutDimensions().begin(), LayoutDimensions().end(),
                     [&](const LayoutDimension& one) { return one.name == pair[0]; });
    if (dimension == LayoutDimensions().end())
      return Malformed(
          text, absl::StrCat("unknown dimension '", pair[0], "'", DidYouMean(pair[0], known)));
    if (!seen.insert(pair[0]).second) return Malformed(text, absl::StrCat(pair[0], " comes twice"));
    int degree = 0;
    if (!absl::SimpleAtoi(pair[1], &degree) || degree < 1 || degree > kMostRanks)
      return Malformed(text, absl::StrCat(pair[0], " is a number from 1 to ", kMostRanks));
    layout.*(dimension->degree) = degree;
  }
  int64_t ranks = layout.shards();
  for (const int degree : {layout.dp_replicate, layout.tp, layout.cp, layout.pp, layout.ulysses}) {
    ranks *= degree;
    if (ranks > kMostRanks)
      return Malformed(text, absl::StrCat("a cell has at most ", kMostRanks, " ranks"));
  }
  if (layout.shards() * layout.cp * layout.tp % layout.ep != 0)
    return Malformed(text, absl::StrCat("ep=", layout.ep, " does not divide dp_shard * cp * tp = ",
                                        layout.shards() * layout.cp * layout.tp,
                                        ", the ranks that experts are spread over"));
  return layout;
}

}  // namespace bkm
