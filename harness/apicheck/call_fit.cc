// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/call_fit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bkm {
namespace {

using PKind = Parameter::Kind;

bool ByPosition(const Parameter& parameter) {
  return parameter.kind == PKind::kByPosition || parameter.kind == PKind::kEither;
}

bool ByName(const Parameter& parameter) {
  return parameter.kind == PKind::kEither || parameter.kind == PKind::kByName;
}

std::optional<Failure> MisfitOfName(const std::vector<Parameter>& parameters,
                                    const std::vector<const Parameter*>& positional,
                                    const CallShape& call, const std::string& name) {
  const auto is_name = [&](const Parameter& p) { return ByName(p) && p.name == name; };
  const auto found = std::find_if(parameters.begin(), parameters.end(), is_name);
  if (found == parameters.end()) {
    const bool rest = std::any_of(parameters.begin(), parameters.end(),
                                  [](const Parameter& p) { return p.kind == PKind::kNamedRest; });
    if (rest) return std::nullopt;
    return Failure{"unknown-keyword", absl::StrCat("has no keyword '", name, "'"), ""};
  }
  const auto place = std::find(positional.begin(), positional.end(), &*found);
  if (place != positional.end() && place - positional.begin() < call.by_position) {
    return Failure{"unknown-keyword",
                   absl::StrCat("gets '", name, "' twice, by position and by keyword"), ""};
  }
  return std::nullopt;
}

}  // namespace

CallShape CallShape::Of(const Expression& call) {
  CallShape shape{call.by_position, call.names, call.starred, call.spread};
  std::sort(shape.names.begin(), shape.names.end());
  return shape;
}

std::string CallShape::ToString() const {
  std::vector<std::string> parts;
  if (by_position > 0) parts.push_back(absl::StrCat(by_position, " by position"));
  if (starred) parts.push_back("*");
  for (const std::string& name : names) parts.push_back(absl::StrCat(name, "="));
  if (spread) parts.push_back("**");
  return absl::StrCat("(", absl::StrJoin(parts, ", "), ")");
}

std::optional<Failure> Misfit(const std::vector<Parameter>& parameters, int bound,
                              const CallShape& call) {
  std::vector<const Parameter*> positional;
  bool rest = false;
  for (const Parameter& parameter : parameters) {
    rest = rest || parameter.kind == PKind::kRest;
    if (ByPosition(parameter)) positional.push_back(&parameter);
  }
  // Parameters that are already filled cannot be passed by keyword either.
  std::vector<Parameter> open = parameters;
  const int filled = std::min<int>(bound, static_cast<int>(positional.size()));
  open.erase(open.begin(), open.begin() + filled);
  positional.clear();
  for (const Parameter& parameter : open) {
    if (ByPosition(parameter)) positional.push_back(&parameter);
  }
  if (!rest && call.by_position > static_cast<int>(positional.size())) {
    return Failure{
        "too-many-arguments",
        absl::StrCat("takes ", positional.size(), " arguments by position, not ", call.by_position),
        ""};
  }
  for (const std::string& name : call.names) {
    if (auto failure = MisfitOfName(open, positional, call, name)) return failure;
  }
  if (call.spread) return std::nullopt;
  int place = 0;
  for (const Parameter& parameter : open) {
    const bool by_position = ByPosition(parameter);
    const bool given = (by_position && place < call.by_position) ||
                       std::binary_search(call.names.begin(), call.names.end(), parameter.name);
    if (by_position) ++place;
    const bool perhaps = by_position && call.starred;
    const bool wanted = by_position || parameter.kind == PKind::kByName;
    if (!wanted || given || perhaps || parameter.has_default) continue;
    return Failure{"missing-argument", absl::StrCat("requires '", parameter.name, "'"), ""};
  }
  return std::nullopt;
}

}  // namespace bkm
