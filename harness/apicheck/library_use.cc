// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/library_use.h"

#include <algorithm>

namespace bkm {

EngineValue LibraryUse::Need(Ask ask, int line, const WalkFrame& frame) {
  const int number = asks_.Of(std::move(ask));
  const Grade grade = frame.certain ? phase_ : Grade::kPossible;
  const auto [it, added] = needs_.emplace(std::pair(number, std::pair(frame.module, line)), grade);
  if (!added) it->second = std::min(it->second, grade);
  return {.kind = EngineValue::Kind::kAsk, .number = number};
}

EngineValue LibraryUse::Module(const std::string& dotted) {
  return {.kind = EngineValue::Kind::kAsk,
          .number = asks_.Of({.kind = Ask::Kind::kModule, .name = dotted})};
}

std::vector<Requirement> LibraryUse::Requirements() const {
  std::vector<Requirement> requirements;
  for (const auto& [where, grade] : needs_) {
    requirements.push_back({where.first, grade, where.second.first, where.second.second});
  }
  std::sort(requirements.begin(), requirements.end());
  return requirements;
}

}  // namespace bkm
