// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/dotted_name.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace bkm {

std::string ParentOf(const std::string& dotted) {
  const size_t dot = dotted.rfind('.');
  return dot == dotted.npos ? "" : dotted.substr(0, dot);
}

bool IsWithin(absl::string_view dotted, absl::string_view package) {
  return absl::StartsWith(dotted, package) &&
         (dotted.size() == package.size() || dotted[package.size()] == '.');
}

std::string ImportTarget(const Statement& from, const std::string& module, bool is_package) {
  if (from.level == 0) return from.text;
  std::string package = module;
  for (int up = is_package ? 1 : 0; up < from.level; ++up) package = ParentOf(package);
  return from.text.empty() ? package : absl::StrCat(package, ".", from.text);
}

}  // namespace bkm
