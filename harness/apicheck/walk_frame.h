// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_WALK_FRAME_H_
#define HARNESS_APICHECK_WALK_FRAME_H_

#include <vector>

#include "harness/apicheck/engine_value.h"
#include "harness/apicheck/symbol_table.h"

namespace bkm {

// The state of one body that a walk follows: of a module, a class or a function.
struct WalkFrame {
  EngineScope* scope = nullptr;
  int module = -1;
  bool certain = true;             // the current statement runs, or the cell has failed before
  int depth = 0;                   // of nested calls
  EngineClass* klass = nullptr;    // the method's class, for super()
  EngineObject* object = nullptr;  // the method's self
  std::vector<EngineValue> returned;
};

// Follows a block of statements. Calls and imports lead back to statements through this interface.
class BlockWalker {
 public:
  // How a block may end, as bits.
  static constexpr int kGoesOn = 1, kRaises = 2, kReturns = 4, kBreaks = 8;

  virtual ~BlockWalker() = default;
  virtual int WalkBlock(const Block& block, WalkFrame& frame) = 0;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_WALK_FRAME_H_
