// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/asked_cell.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/model/dimension.h"

namespace bkm {

std::string AskedText(const Cell& cell) {
  std::vector<std::string> parts;
  for (const Dimension& key : Dimensions()) {
    if (!key.IsOmitted(cell)) parts.push_back(absl::StrCat(key.name, "=", key.AskedText(cell)));
  }
  return absl::StrJoin(parts, ",");
}

}  // namespace bkm
