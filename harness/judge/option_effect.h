// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_OPTION_EFFECT_H_
#define HARNESS_JUDGE_OPTION_EFFECT_H_

#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/model/observation.h"
#include "harness/model/verdict.h"

namespace bkm {

// What was seen of one cell. Pointers are borrowed.
struct SeenCell {
  const Observation* observation = nullptr;
  const Json* lines = nullptr;     // the observation's "lines": {phase: {party: {file: [line]}}}
  std::filesystem::path cell_dir;  // holds the step files that the observation names
};

// A twin: the same cell without one of its engine options.
struct OptionTwin {
  std::string option;
  SeenCell seen = {};
  std::string missing = "the cell without it was not measured";  // why `seen` has no observation
};

// Whether the option acts: whether anything that was seen of the cell differs from its twin. Looks
// at the lines of the subjects that ran, at what the attention and the optimizer were made of, at
// matrix products, collectives and shares of ranks, and at every number of every step, bit by bit.
// A difference proves that the option does something, not that it does what its name says. Unknown
// if nothing differs and some numbers cannot be read.
OptionEffect EffectOf(const SeenCell& cell, const OptionTwin& twin);

}  // namespace bkm

#endif  // HARNESS_JUDGE_OPTION_EFFECT_H_
