// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/engine_walk.h"

#include <algorithm>

namespace bkm {
namespace {

using Kind = EngineValue::Kind;

}  // namespace

EngineWalk::EngineWalk(SymbolTables& tables, const SourceTree& tree, const std::string& library,
                       Asks& asks)
    : use_(library, asks),
      modules_({tables, tree, arena_, use_, *this}),
      imports_(modules_, use_),
      attributes_(modules_, use_),
      calls_({arena_, use_, modules_, imports_, attributes_, *this}),
      expressions_(arena_, attributes_, calls_),
      statements_(arena_, imports_, calls_, expressions_) {}

void EngineWalk::Run(const EngineEntry& entry) {
  for (const std::string& name : entry.modules) {
    const int module = modules_.Number(name);
    if (!modules_.IsThere(module) && missing_entry_.empty()) missing_entry_ = name;
    modules_.Import(module, true);
  }
  if (!entry.klass.empty() && !entry.modules.empty()) {
    use_.SetPhase(Grade::kConstruct);
    MakeEntryObject(entry);
  }
  use_.SetPhase(Grade::kPossible);
  calls_.StopEntering();
  WalkEverything();
}

void EngineWalk::MakeEntryObject(const EngineEntry& entry) {
  const int module = modules_.Number(entry.modules.back());
  const WalkFrame frame{.scope = modules_.Scope(module), .module = module};
  if (!frame.scope) return;
  const EngineValue klass = frame.scope->LookUp(entry.klass);
  if (klass.kind != Kind::kClass) return;
  followed_ = true;
  const EngineValue object = calls_.MakeObject(klass.klass, {}, frame);
  entry_object_ = object.object;
  for (const std::string& method : entry.methods) {
    calls_.Call(attributes_.Get(object, method, 0, frame), {}, frame);
  }
}

void EngineWalk::WalkEverything() {
  for (const auto& [module, scope] : modules_.Imported()) {
    const SymbolTable* table = modules_.Table(module);
    if (!table ||
        !std::binary_search(table->imports.begin(), table->imports.end(), use_.library())) {
      continue;
    }
    WalkFrame frame{.scope = scope, .module = module, .certain = false};
    WalkFunctionsIn(table->body, frame, nullptr);
  }
}

void EngineWalk::WalkFunctionsIn(const Block& block, WalkFrame& frame, EngineClass* klass) {
  for (const Statement& statement : block) {
    for (const Block& inner : statement.blocks) WalkFunctionsIn(inner, frame, klass);
    if (statement.klass) {
      const EngineValue value = frame.scope->LookUp(statement.klass->name);
      const bool same = value.kind == Kind::kClass && value.klass->definition == &*statement.klass;
      WalkFunctionsIn(statement.klass->body, frame, same ? value.klass : nullptr);
    }
    if (statement.function) WalkFunction(*statement.function, frame, klass);
  }
}

void EngineWalk::WalkFunction(const FunctionDefinition& function, const WalkFrame& frame,
                              EngineClass* klass) {
  WalkFrame inside{.scope = arena_.NewScope(frame.module, frame.scope),
                   .module = frame.module,
                   .certain = false,
                   .klass = klass};
  for (const Parameter& parameter : function.parameters) inside.scope->values[parameter.name] = {};
  const bool of_entry = klass && entry_object_ && entry_object_->klass->Inherits(klass);
  if (of_entry && !function.parameters.empty()) {
    inside.object = entry_object_;
    inside.scope->values[function.parameters[0].name] = {.kind = Kind::kObject,
                                                         .object = entry_object_};
  }
  const Block* body = modules_.BodyOf(function, frame.module);
  if (body) WalkBlock(*body, inside);
}

}  // namespace bkm
