// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_CALL_FIT_H_
#define HARNESS_APICHECK_CALL_FIT_H_

#include <optional>
#include <string>
#include <vector>

#include "harness/apicheck/symbol_table.h"

namespace bkm {

// The arguments of a call, as far as Python checks them before it runs the callee.
struct CallShape {
  int by_position = 0;
  std::vector<std::string> names;  // keywords, sorted
  bool starred = false;            // *args: more by position, perhaps
  bool spread = false;             // **kwargs: more keywords, perhaps

  static CallShape Of(const Expression& call);
  // "(1 by position, attn_backend=)"
  std::string ToString() const;
  bool operator==(const CallShape&) const = default;
};

// Why an ask fails.
struct Failure {
  // missing-module, missing-name, missing-attribute, unknown-keyword, missing-argument,
  // too-many-arguments, no-such-slot, syntax-error: stable codes.
  std::string reason;
  std::string problem;  // "has no keyword 'name'"
  std::string where;    // the library's side: "torchtitan/components/optimizer.py:72"
  bool operator==(const Failure&) const = default;
};

// Why a function with these parameters refuses the call whatever the values are; `where` stays
// empty. `bound` is the number of leading parameters that are already filled (self).
std::optional<Failure> Misfit(const std::vector<Parameter>& parameters, int bound,
                              const CallShape& call);

}  // namespace bkm

#endif  // HARNESS_APICHECK_CALL_FIT_H_
