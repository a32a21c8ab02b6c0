// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/requirement.h"

#include "absl/strings/str_cat.h"

namespace bkm {

absl::string_view Name(Grade grade) {
  switch (grade) {
    case Grade::kImport:
      return "import";
    case Grade::kConstruct:
      return "construct";
    case Grade::kPossible:
      return "possible";
  }
  return "";
}

int Asks::Of(Ask ask) {
  const std::string key = absl::StrCat(static_cast<int>(ask.kind), " ", ask.base, " ", ask.name,
                                       ask.kind == Ask::Kind::kCall ? ask.call.ToString() : "");
  const auto [it, added] = numbers_.emplace(key, static_cast<int>(asks_.size()));
  if (added) asks_.push_back(std::move(ask));
  return it->second;
}

std::string Asks::ToString(int number) const {
  const Ask& ask = asks_[number];
  switch (ask.kind) {
    case Ask::Kind::kModule:
      return ask.name;
    case Ask::Kind::kAnyModule:
      return absl::StrCat(ask.name, "*");
    case Ask::Kind::kCall:
      return absl::StrCat(ToString(ask.base), ask.call.ToString());
    case Ask::Kind::kStore:
      return absl::StrCat(ToString(ask.base), ".", ask.name, " = ...");
    default:
      return absl::StrCat(ToString(ask.base), ".", ask.name);
  }
}

}  // namespace bkm
