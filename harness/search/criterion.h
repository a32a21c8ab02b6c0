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

// Decides which verdicts are good and which are bad. By default `ok` is good, and every verdict
// against the pair (refused, broken, wrong) is bad, whatever its reason. With patterns, a match is
// bad, a verdict with the signature of the good end is good, and any other is neither. A verdict
// that says nothing about the pair (spurious, unsupported, skipped) is neither.
class Criterion {
 public:
  Criterion() = default;
  // "key=pattern,key=pattern"; keys are verdict, stage, reason, message and blame, patterns are
  // shell globs. An empty text is the default criterion.
  static absl::StatusOr<Criterion> Parse(absl::string_view text);

  // `good_signature` is ShortText of the good end's verdict. While it is unknown (empty), every
  // judged verdict that is not bad is good.
  Side SideOf(const Verdict& verdict, absl::string_view good_signature) const;
  // What is bad, for people.
  std::string Text() const;
  bool by_pattern() const { return !patterns_.empty(); }

 private:
  std::map<std::string, std::string> patterns_;
};

}  // namespace bkm

#endif  // HARNESS_SEARCH_CRITERION_H_
