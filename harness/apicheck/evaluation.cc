// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/evaluation.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace bkm {

const LibraryAnswer& Evaluation::Of(int ask) {
  const auto known = answers_.find(ask);
  if (known != answers_.end()) return known->second;
  LibraryAnswer answer = Answered(asks_.At(ask));
  return answers_.emplace(ask, std::move(answer)).first->second;
}

LibraryAnswer Evaluation::AnyModule(const std::string& prefix) {
  LibraryAnswer answer;
  std::vector<int> candidates = library_.ModulesAfter(prefix);
  for (const int module : candidates) {
    LibraryAnswer one = library_.Import(module);
    if (one.failure) {
      if (!answer.failure) answer.failure = one.failure;
    } else {
      answer.values.push_back(one.values[0]);
    }
  }
  if (!answer.values.empty()) answer.failure.reset();
  if (candidates.empty()) {
    answer.failure =
        Failure{"missing-module", absl::StrCat("there is no module ", prefix, "*"), ""};
  }
  return answer;
}

LibraryAnswer Evaluation::AskedOf(const LibraryValue& value, const Ask& ask) {
  switch (ask.kind) {
    case Ask::Kind::kFrom: {
      LibraryAnswer answer = library_.Attribute(value, ask.name);
      // `from a import b` also imports the submodule a.b.
      const bool module =
          answer.values.size() == 1 && answer.values[0].kind == LibraryValue::Kind::kModule;
      return module ? library_.Import(answer.values[0].module) : answer;
    }
    case Ask::Kind::kMember:
      return library_.Attribute(value, ask.name);
    case Ask::Kind::kCall:
      return library_.Call(value, ask.call);
    case Ask::Kind::kStore:
      return library_.Store(value, ask.name);
    default:
      return {};
  }
}

LibraryAnswer Evaluation::Answered(const Ask& ask) {
  if (ask.kind == Ask::Kind::kModule) return library_.Import(tables_.Module(ask.name));
  if (ask.kind == Ask::Kind::kAnyModule) return AnyModule(ask.name);
  // An ask whose base fails is not a failure of its own.
  const std::vector<LibraryValue> values = Of(ask.base).values;
  LibraryAnswer answer;
  for (const LibraryValue& value : values) {
    LibraryAnswer one = AskedOf(value, ask);
    if (one.failure) {
      if (!answer.failure) answer.failure = one.failure;
      continue;
    }
    if (one.values.empty()) one.values.resize(1);
    answer.values.insert(answer.values.end(), one.values.begin(), one.values.end());
  }
  // The ask fails only if it fails for every possible value.
  if (!answer.values.empty()) answer.failure.reset();
  return answer;
}

}  // namespace bkm
