// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SEARCH_CRITERION_H_
#define HARNESS_SEARCH_CRITERION_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/model/verdict.h"

namespace bkm {

enum class Side { kGood, kBad, kNeither };
inline Side Opposite(Side side) { return side == Side::kGood ? Side::kBad : Side::kGood; }
inline const char* Name(Side side) {
  return side == Side::kGood ? "good" : side == Side::kBad ? "bad" : "neither";
}

// What counts as good and as bad. By default an `ok` is good and every verdict against the pair
// (refused, broken, wrong) is bad, whatever its reason. With patterns, bad is what matches them;
// good is only what has the same signature as the good end, and a commit that is differently bad
// is neither. A verdict that says nothing of the pair (spurious, unsupported, skipped) is neither.
class Criterion {
 public:
  Criterion() = default;
  // "key=pattern,key=pattern" with the keys verdict, stage, reason, message and blame; a pattern
  // is a shell glob. Empty: the default.
  static absl::StatusOr<Criterion> Parse(absl::string_view text);

  // `good_signature`: ShortText of the good end's verdict; empty as long as it is not known, when
  // everything is good that is not bad.
  Side SideOf(const Verdict& verdict, absl::string_view good_signature) const;
  // For people: what is bad.
  std::string Text() const;
  bool by_pattern() const { return !patterns_.empty(); }

 private:
  std::map<std::string, std::string> patterns_;
};

}  // namespace bkm

#endif  // HARNESS_SEARCH_CRITERION_H_
