// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/engine_statements.h"

#include <string>

#include "harness/apicheck/names.h"
#include "harness/apicheck/python_names.h"

namespace bkm {
namespace {

using EKind = Expression::Kind;
using Kind = EngineValue::Kind;
using SKind = Statement::Kind;

constexpr int kGoesOn = BlockWalker::kGoesOn, kRaises = BlockWalker::kRaises,
              kReturns = BlockWalker::kReturns, kBreaks = BlockWalker::kBreaks;

}  // namespace

int EngineStatements::WalkBlock(const Block& block, WalkFrame& frame) {
  const bool certain = frame.certain;
  int exits = kGoesOn;
  for (const Statement& statement : block) {
    const int more = Walk(statement, frame);
    exits = (exits & ~kGoesOn) | more;
    if (!(more & kGoesOn)) break;
    // A statement after a possible return or break may not run. A raise does not count: where it
    // is taken, the cell has failed.
    if (more & (kReturns | kBreaks)) frame.certain = false;
  }
  frame.certain = certain;
  return exits;
}

int EngineStatements::WalkUncertain(const Block& block, WalkFrame& frame) {
  const bool certain = frame.certain;
  frame.certain = false;
  const int exits = WalkBlock(block, frame);
  frame.certain = certain;
  return exits;
}

int EngineStatements::WalkIf(const Statement& statement, WalkFrame& frame) {
  if (IsForTypeCheckers(statement.parts[0])) return WalkBlock(statement.blocks[1], frame);
  expressions_.Evaluate(statement.parts[0], frame);
  const int then = WalkUncertain(statement.blocks[0], frame);
  return then | WalkUncertain(statement.blocks[1], frame);
}

int EngineStatements::WalkTry(const Statement& statement, WalkFrame& frame) {
  // blocks: body, else, finally, handlers...
  const bool guarded = statement.blocks.size() > 3;
  int exits =
      guarded ? WalkUncertain(statement.blocks[0], frame) : WalkBlock(statement.blocks[0], frame);
  if (guarded) {
    exits |= WalkUncertain(statement.blocks[1], frame);
    for (size_t i = 3; i < statement.blocks.size(); ++i) {
      const std::string& name = statement.names[i - 3].name;
      if (!name.empty()) frame.scope->Bind(name, {}, frame.certain);
      exits |= WalkUncertain(statement.blocks[i], frame);
    }
  }
  return exits | (WalkBlock(statement.blocks[2], frame) & ~kGoesOn);
}

int EngineStatements::WalkWith(const Statement& statement, WalkFrame& frame) {
  bool passes = true;
  for (size_t i = 0; i < statement.parts.size(); i += 2) {
    const Expression& context = statement.parts[i];
    EngineValue manager;
    if (context.kind == EKind::kCall) manager = expressions_.Evaluate(context.parts[0], frame);
    passes = passes && manager.kind == Kind::kExternal && LetsExceptionsPass(manager.text);
    expressions_.Evaluate(context, frame);
    expressions_.Assign(statement.parts[i + 1], {}, frame);
  }
  if (passes) return WalkBlock(statement.blocks[0], frame);
  return WalkUncertain(statement.blocks[0], frame) | kGoesOn;
}

int EngineStatements::WalkLoop(const Statement& statement, WalkFrame& frame) {
  expressions_.Evaluate(statement.parts[0], frame);
  expressions_.Assign(statement.parts[1], {}, frame);
  return (WalkUncertain(statement.blocks[0], frame) & ~kBreaks) | kGoesOn;
}

int EngineStatements::WalkMatch(const Statement& statement, WalkFrame& frame) {
  expressions_.Evaluate(statement.parts[0], frame);
  for (const ImportedName& name : statement.names) {
    frame.scope->Bind(name.name, {}, frame.certain);
  }
  int exits = kGoesOn;
  for (const Block& block : statement.blocks) exits |= WalkUncertain(block, frame);
  return exits;
}

void EngineStatements::AssignAll(const Statement& statement, WalkFrame& frame) {
  const EngineValue value = expressions_.Evaluate(statement.parts[0], frame);
  for (size_t i = 1; i < statement.parts.size(); ++i) {
    expressions_.Assign(statement.parts[i], value, frame);
  }
}

int EngineStatements::Walk(const Statement& statement, WalkFrame& frame) {
  switch (statement.kind) {
    case SKind::kReturn:
      frame.returned.push_back(expressions_.Evaluate(statement.parts[0], frame));
      return kReturns;
    case SKind::kRaise:
      expressions_.Evaluate(statement.parts[0], frame);
      return kRaises;
    case SKind::kLeave:
      return kBreaks;
    case SKind::kIf:
      return WalkIf(statement, frame);
    case SKind::kTry:
      return WalkTry(statement, frame);
    case SKind::kWith:
      return WalkWith(statement, frame);
    case SKind::kLoop:
      return WalkLoop(statement, frame);
    case SKind::kMatch:
      return WalkMatch(statement, frame);
    case SKind::kImport:
      imports_.Import(statement, frame);
      break;
    case SKind::kFrom:
      imports_.ImportFrom(statement, frame);
      break;
    case SKind::kDefine:
      DefineFunction(statement, frame);
      break;
    case SKind::kClass:
      DefineClass(statement, frame);
      break;
    case SKind::kAssign:
      AssignAll(statement, frame);
      break;
    case SKind::kAnnotated:
      if (!statement.has_value) break;
      expressions_.Assign(statement.parts[1], expressions_.Evaluate(statement.parts[0], frame),
                          frame);
      break;
    case SKind::kDelete:
      for (const Expression& part : statement.parts) expressions_.Assign(part, {}, frame);
      break;
    case SKind::kExpression:
      expressions_.EvaluateAll(statement.parts, frame);
      break;
  }
  return kGoesOn;
}

void EngineStatements::DefineFunction(const Statement& statement, WalkFrame& frame) {
  const FunctionDefinition& function = *statement.function;
  expressions_.EvaluateAll(function.defaults, frame);
  const bool in_class = frame.klass && frame.klass->scope == frame.scope;
  EngineValue value{.kind = Kind::kFunction,
                    .function = &function,
                    .closure = in_class ? frame.scope->around : frame.scope,
                    .klass = in_class ? frame.klass : nullptr};
  for (auto it = function.decorators.rbegin(); it != function.decorators.rend(); ++it) {
    const EngineValue decorator = expressions_.Evaluate(*it, frame);
    const EngineValue named =
        it->kind == EKind::kCall ? expressions_.Evaluate(it->parts[0], frame) : decorator;
    const std::string name = named.kind == Kind::kExternal ? named.text : "";
    if (name == "builtins.staticmethod") {
      value.is_static = true;
    } else if (name == "builtins.classmethod") {
      value.is_class_method = true;
    } else if (decorator.kind == Kind::kFunction && calls_.entering()) {
      value = calls_.CallFunction(decorator, {.arguments = {value}}, frame);
      if (value.kind == Kind::kFunction && in_class && !value.klass) value.klass = frame.klass;
    } else if (!KeepsSignature(name)) {
      value = {};
    }
  }
  frame.scope->Bind(function.name, value, frame.certain);
}

void EngineStatements::DefineClass(const Statement& statement, WalkFrame& frame) {
  const ClassDefinition& definition = *statement.klass;
  EngineClass* klass = arena_.NewClass(&definition, arena_.NewScope(frame.module, frame.scope));
  for (const Expression& base : definition.bases) {
    klass->bases.push_back(expressions_.Evaluate(base, frame));
  }
  WalkFrame inside{.scope = klass->scope,
                   .module = frame.module,
                   .certain = frame.certain,
                   .depth = frame.depth,
                   .klass = klass};
  WalkBlock(definition.body, inside);
  EngineValue value{.kind = Kind::kClass, .klass = klass};
  for (auto it = definition.decorators.rbegin(); it != definition.decorators.rend(); ++it) {
    const EngineValue decorator = expressions_.Evaluate(*it, frame);
    const EngineValue named =
        it->kind == EKind::kCall ? expressions_.Evaluate(it->parts[0], frame) : decorator;
    if (named.kind == Kind::kExternal && KeepsClass(named.text)) continue;
    value = calls_.Call(decorator, {.arguments = {value}, .line = statement.line}, frame);
  }
  frame.scope->Bind(definition.name, value, frame.certain);
}

}  // namespace bkm
