// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_CLAIMS_H_
#define HARNESS_JUDGE_CLAIMS_H_

#include <span>
#include <string>

#include "harness/judge/check_result.h"
#include "harness/model/verdict.h"

namespace bkm {

struct CaseFile;  // case_file.h

// What a verdict says about a cell, by a witness that could have said no. Each lies beside its
// check and has a row in claims.cc. docs/verdicts.md shows them.
struct Claim {
  const char* name;           // Finding::claim; written to verdict.json: never rename
  Stage rung;                 // of the ladder from resolve to resume, to which it belongs
  const char* asked_by = "";  // the field of a matrix that asks for it; empty: every cell claims it
  // For readers, in Markdown.
  const char* says;        // a clause: "the checkpoint was loaded"
  const char* witness;     // and when it looks
  const char* cannot_see;  // what would pass
  // Whether this cell claims it; of a cell that stopped, whether its witness had looked.
  bool (*applies)(const CaseFile& file);
  CheckResult (*check)(const CaseFile& file);
};

// By precedence: of two claims that fail alike, the first explains more.
std::span<const Claim* const> Claims();

// Whether a claim of this rung failed, whatever the verdict names.
bool FailsAt(const Verdict& verdict, Stage rung);

// The claim's row of the table in docs/verdicts.md.
std::string RowOf(const Claim& claim);

// For Claim::applies.
bool OfFinishedCells(const CaseFile& file);

}  // namespace bkm

#endif  // HARNESS_JUDGE_CLAIMS_H_
