// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_ENGINE_EXPRESSIONS_H_
#define HARNESS_APICHECK_ENGINE_EXPRESSIONS_H_

#include <vector>

#include "harness/apicheck/engine_attributes.h"
#include "harness/apicheck/engine_calls.h"
#include "harness/apicheck/walk_frame.h"

namespace bkm {

// Evaluates the engine's expressions in Python's order, and assigns to them.
class EngineExpressions {
 public:
  EngineExpressions(EngineArena& arena, EngineAttributes& attributes, EngineCalls& calls)
      : arena_(arena), attributes_(attributes), calls_(calls) {}

  EngineValue Evaluate(const Expression& expression, WalkFrame& frame);
  void EvaluateAll(const std::vector<Expression>& expressions, WalkFrame& frame);
  void Assign(const Expression& target, const EngineValue& value, WalkFrame& frame);

 private:
  EngineValue EvaluateCall(const Expression& call, WalkFrame& frame);
  // Parts that may be evaluated, now or later.
  void EvaluateUncertain(const Expression& expression, WalkFrame& frame);

  EngineArena& arena_;
  EngineAttributes& attributes_;
  EngineCalls& calls_;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_ENGINE_EXPRESSIONS_H_
