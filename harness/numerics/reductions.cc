// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/reductions.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bkm {

Reductions ReductionsOf(const Layout& layout) {
  return {.documents = layout.data_ranks() * layout.sequence_ranks(),
          .queries = layout.cp,
          .features = layout.tp};
}

std::string ReductionsText(const Reductions& reductions) {
  std::vector<std::string> divided;
  for (const auto& [name, parts] :
       {std::pair("documents", reductions.documents), std::pair("queries", reductions.queries),
        std::pair("features", reductions.features)}) {
    if (parts > 1) divided.push_back(absl::StrCat(name, "=", parts));
  }
  return absl::StrJoin(divided, "+");
}

}  // namespace bkm
