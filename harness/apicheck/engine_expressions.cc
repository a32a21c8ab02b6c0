// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/engine_expressions.h"

#include <string>

namespace bkm {
namespace {

using EKind = Expression::Kind;
using Kind = EngineValue::Kind;

}  // namespace

void EngineExpressions::EvaluateAll(const std::vector<Expression>& expressions, WalkFrame& frame) {
  for (const Expression& expression : expressions) Evaluate(expression, frame);
}

EngineValue EngineExpressions::Evaluate(const Expression& expression, WalkFrame& frame) {
  switch (expression.kind) {
    case EKind::kText:
      return {.kind = Kind::kText, .text = expression.text};
    case EKind::kFormatted: {
      EvaluateAll(expression.parts, frame);
      if (expression.parts.empty() || expression.parts[0].kind != EKind::kText) return {};
      return {.kind = Kind::kTextFrom, .text = expression.parts[0].text};
    }
    case EKind::kName:
      return frame.scope->LookUp(expression.text);
    case EKind::kAttribute:
      return attributes_.Get(Evaluate(expression.parts[0], frame), expression.text, expression.line,
                             frame);
    case EKind::kCall:
      return EvaluateCall(expression, frame);
    case EKind::kNamed: {
      const EngineValue value = Evaluate(expression.parts[0], frame);
      frame.scope->Bind(expression.text, value, frame.certain);
      return value;
    }
    case EKind::kParts:
    case EKind::kSequence:
      EvaluateAll(expression.parts, frame);
      return {};
    case EKind::kEither:
    case EKind::kLater:
      EvaluateUncertain(expression, frame);
      return {};
    default:
      return {};
  }
}

void EngineExpressions::EvaluateUncertain(const Expression& expression, WalkFrame& frame) {
  const bool later = expression.kind == EKind::kLater;
  WalkFrame inside = frame;
  if (later) {
    inside.scope = arena_.NewScope(frame.module, frame.scope);
    for (const std::string& name : expression.names) inside.scope->values[name] = {};
  } else {
    Evaluate(expression.parts[0], frame);
  }
  inside.certain = false;
  for (size_t i = later ? 0 : 1; i < expression.parts.size(); ++i) {
    Evaluate(expression.parts[i], inside);
  }
}

EngineValue EngineExpressions::EvaluateCall(const Expression& call, WalkFrame& frame) {
  const Expression& function = call.parts[0];
  EngineValue owner;
  EngineValue callee;
  if (function.kind == EKind::kAttribute) {
    owner = Evaluate(function.parts[0], frame);
    callee = attributes_.Get(owner, function.text, function.line, frame);
  } else {
    callee = Evaluate(function, frame);
  }
  CallSite site{.call = &call, .line = call.line};
  for (size_t i = 1; i < call.parts.size(); ++i) {
    site.arguments.push_back(Evaluate(call.parts[i], frame));
  }
  if (callee.kind == Kind::kUnknown) Escape(owner);
  return calls_.Call(callee, site, frame);
}

void EngineExpressions::Assign(const Expression& target, const EngineValue& value,
                               WalkFrame& frame) {
  switch (target.kind) {
    case EKind::kName:
      return frame.scope->Bind(target.text, value, frame.certain);
    case EKind::kSequence:
      for (const Expression& part : target.parts) Assign(part, {}, frame);
      return;
    case EKind::kAttribute:
      return attributes_.Set(Evaluate(target.parts[0], frame), target.text, value, target.line,
                             frame);
    default:
      Evaluate(target, frame);
  }
}

}  // namespace bkm
