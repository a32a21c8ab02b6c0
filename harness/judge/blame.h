// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_BLAME_H_
#define HARNESS_JUDGE_BLAME_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "harness/model/observation.h"

namespace bkm {

// Import names, to tell whose module a missing name belongs to.
struct Packages {
  std::string engine;  // empty in a control cell
  std::string library;
};

// Who is to blame for what stopped a cell: a sorted list out of engine, harness, interface, library
// and runtime; empty: unknown. `control` is the cell that runs the library alone in the same
// runtime on the same probe; a cell with an engine and without one (nullptr) stays unblamed, since
// the engine cannot be told from the library. The rules, first match wins:
// 1. An engine frame that asks the library for a name or a keyword it does not have: interface.
// 2. The same exception in the control: not the engine; the control's own frames decide.
// 3. Raised inside torch: the party that called torch, and the runtime.
// 4. The deepest party whose own code raised.
// An ending without an exception (a crash, a limit, a timeout) that the control shares is the
// library's or the runtime's; else it is unknown.
std::vector<std::string> BlameForStop(const Observation& observation, const Packages& packages,
                                      const Observation* control);

}  // namespace bkm

#endif  // HARNESS_JUDGE_BLAME_H_
