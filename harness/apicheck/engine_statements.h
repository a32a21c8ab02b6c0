// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_ENGINE_STATEMENTS_H_
#define HARNESS_APICHECK_ENGINE_STATEMENTS_H_

#include "harness/apicheck/engine_calls.h"
#include "harness/apicheck/engine_expressions.h"
#include "harness/apicheck/engine_imports.h"
#include "harness/apicheck/walk_frame.h"

namespace bkm {

// Follows the engine's statements as Python would run them, and tells which of them certainly run.
class EngineStatements {
 public:
  EngineStatements(EngineArena& arena, EngineImports& imports, EngineCalls& calls,
                   EngineExpressions& expressions)
      : arena_(arena), imports_(imports), calls_(calls), expressions_(expressions) {}

  // Returns how the block may end: bits of BlockWalker.
  int WalkBlock(const Block& block, WalkFrame& frame);

 private:
  int Walk(const Statement& statement, WalkFrame& frame);
  int WalkUncertain(const Block& block, WalkFrame& frame);
  int WalkIf(const Statement& statement, WalkFrame& frame);
  int WalkTry(const Statement& statement, WalkFrame& frame);
  int WalkWith(const Statement& statement, WalkFrame& frame);
  int WalkLoop(const Statement& statement, WalkFrame& frame);
  int WalkMatch(const Statement& statement, WalkFrame& frame);
  void AssignAll(const Statement& statement, WalkFrame& frame);
  void DefineFunction(const Statement& statement, WalkFrame& frame);
  void DefineClass(const Statement& statement, WalkFrame& frame);

  EngineArena& arena_;
  EngineImports& imports_;
  EngineCalls& calls_;
  EngineExpressions& expressions_;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_ENGINE_STATEMENTS_H_
