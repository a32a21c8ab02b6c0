// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_CLAIMS_H_
#define HARNESS_JUDGE_CLAIMS_H_

#include <span>

#include "absl/strings/string_view.h"
#include "harness/model/verdict.h"

namespace bkm {

// What a verdict says about a cell, each from a witness of its own. docs/verdicts.md explains them.
struct Claim {
  const char* name;  // Finding::claim; written to verdict.json: never rename
  Stage rung;        // of the ladder from resolve to resume, to which it belongs
};

// By precedence: of two claims that fail alike, the first explains more.
std::span<const Claim> Claims();

// Whether a claim of this rung failed, whatever the verdict names.
bool FailsAt(const Verdict& verdict, Stage rung);

}  // namespace bkm

#endif  // HARNESS_JUDGE_CLAIMS_H_
