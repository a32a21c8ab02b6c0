// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/search/criterion.h"

#include <fnmatch.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "harness/base/did_you_mean.h"

namespace bkm {
namespace {

const std::vector<std::string>& Keys() {
  static const auto& keys =
      *new std::vector<std::string>{"verdict", "stage", "reason", "message", "blame"};
  return keys;
}

std::string FieldOf(const Verdict& verdict, const std::string& key) {
  if (key == "verdict") return std::string(Name(verdict.kind));
  if (key == "stage") return std::string(Name(verdict.stage));
  if (key == "reason") return verdict.reason;
  if (key == "message") return verdict.message;
  return absl::StrJoin(verdict.blame, "+");
}

}  // namespace

absl::StatusOr<Criterion> Criterion::Parse(absl::string_view text) {
  Criterion criterion;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::vector<std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (pair.size() != 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("--until '", text, "': write key=pattern, for example stage=golden"));
    }
    if (std::find(Keys().begin(), Keys().end(), pair[0]) == Keys().end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--until '", text, "': unknown key '", pair[0], "'",
                       DidYouMean(pair[0], Keys()), " (known: ", absl::StrJoin(Keys(), ", "), ")"));
    }
    criterion.patterns_[pair[0]] = pair[1];
  }
  return criterion;
}

Side Criterion::SideOf(const Verdict& verdict, absl::string_view good_signature) const {
  if (verdict.kind == VerdictKind::kSpurious) return Side::kNeither;
  if (patterns_.empty()) {
    if (!SaysSomething(verdict)) return Side::kNeither;
    return verdict.kind == VerdictKind::kOk ? Side::kGood : Side::kBad;
  }
  const bool matches = std::all_of(patterns_.begin(), patterns_.end(), [&](const auto& pattern) {
    return ::fnmatch(pattern.second.c_str(), FieldOf(verdict, pattern.first).c_str(), 0) == 0;
  });
  if (matches) return Side::kBad;
  if (!SaysSomething(verdict)) return Side::kNeither;
  return good_signature.empty() || ShortText(verdict) == std::string(good_signature)
             ? Side::kGood
             : Side::kNeither;
}

std::string Criterion::Text() const {
  return patterns_.empty() ? "anything but ok"
                           : absl::StrJoin(patterns_, ",", absl::PairFormatter("="));
}

}  // namespace bkm
