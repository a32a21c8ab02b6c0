// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_BLAME_H_
#define HARNESS_JUDGE_BLAME_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "harness/model/observation.h"

namespace bkm {

// Import names of the subjects, to tell whose module a missing name belongs to.
struct Packages {
  std::string engine;  // empty in a control cell
  std::string library;
};

// Who is to blame for stopping a cell: a sorted list of engine, harness, interface, library and
// runtime; empty if unknown. `control` is the cell that runs the library alone in the same runtime
// on the same probe. A cell with an engine but without a control (nullptr) gets no blame, because
// the engine cannot be told from the library. The first rule that matches applies:
// 1. An engine frame asks the library for a name or keyword that it does not have: interface.
//    Engine or library asks torch for a name that it does not have: runtime.
// 2. The control raised the same exception: not the engine; the control's own frames decide.
// 3. The exception was raised inside torch: the party that called torch, and the runtime.
// 4. Otherwise: the deepest party whose own code raised.
//
// An ending without an exception (a crash, a limit, a timeout) that the control shares is blamed on
// library and runtime; otherwise the blame is unknown.
std::vector<std::string> BlameForStop(const Observation& observation, const Packages& packages,
                                      const Observation* control);

// Whether the control stopped with the same exception.
bool ControlStopsAlike(const Observation& observation, const Observation& control);

}  // namespace bkm

#endif  // HARNESS_JUDGE_BLAME_H_
