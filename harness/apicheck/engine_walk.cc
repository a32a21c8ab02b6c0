// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Modules and statements; engine_evaluation.cc has expressions and calls.
#include "harness/apicheck/engine_walk.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "harness/apicheck/names.h"
#include "harness/apicheck/python_names.h"

namespace bkm {
namespace {

using EKind = Expression::Kind;
using SKind = Statement::Kind;

std::string ParentOf(const std::string& dotted) {
  const size_t dot = dotted.rfind('.');
  return dot == dotted.npos ? "" : dotted.substr(0, dot);
}

}  // namespace

void EngineWalk::Run(const EngineEntry& entry) {
  for (const std::string& name : entry.modules) {
    const int module = tables_.Module(name);
    if (missing_entry_.empty() && FileOf(module) == SourceTree::kAbsent) missing_entry_ = name;
    ImportModule(module, true);
  }
  if (!entry.klass.empty() && !entry.modules.empty()) {
    phase_ = Grade::kConstruct;
    const int module = tables_.Module(entry.modules.back());
    Frame frame{.scope = modules_[module], .module = module};
    const Value klass = frame.scope ? Name(entry.klass, frame) : Value();
    if (klass.kind == Kind::kClass) {
      followed_ = true;
      const Value object = MakeObject(klass, nullptr, {}, 0, frame);
      entry_object_ = object.object;
      for (const std::string& method : entry.methods) {
        CallValue(AttributeOf(object, method, 0, frame), nullptr, {}, 0, frame);
      }
    }
  }
  phase_ = Grade::kPossible;
  inlining_ = false;
  WalkEverything();
}

std::vector<Requirement> EngineWalk::Requirements() const {
  std::vector<Requirement> requirements;
  for (const auto& [where, grade] : needs_) {
    requirements.push_back({where.first, grade, where.second.first, where.second.second});
  }
  std::sort(requirements.begin(), requirements.end());
  return requirements;
}

int EngineWalk::FileOf(int module) { return reads_[module] = tree_.File(module); }

void EngineWalk::ImportModule(int module, bool certain) {
  const std::string& name = tables_.ModuleName(module);
  const std::string parent = ParentOf(name);
  if (!parent.empty()) ImportModule(tables_.Module(parent), certain);
  const int file = FileOf(module);
  if (file == SourceTree::kAbsent || importing_.contains(module)) return;
  std::shared_ptr<EngineScope>& scope = modules_[module];
  if (scope && (!certain || certain_.contains(module))) return;
  if (!scope) scope = std::make_shared<EngineScope>(EngineScope{.module = module});
  if (certain) certain_.insert(module);
  const SymbolTable* table = tables_.Table(file);
  if (!table || table->error) return;
  for (const auto& [owner, attribute] : table->patches) {
    if (attribute != "*") stored_.insert(attribute);
  }
  importing_.insert(module);
  Frame frame{.scope = scope, .module = module, .certain = certain};
  WalkBlock(table->body, frame);
  importing_.erase(module);
}

int EngineWalk::WalkBlock(const Block& block, Frame& frame) {
  const bool certain = frame.certain;
  int exits = kGoesOn;
  for (const Statement& statement : block) {
    const int more = WalkStatement(statement, frame);
    exits = (exits & ~kGoesOn) | more;
    if (!(more & kGoesOn)) break;
    // What may have left before does not certainly come here. A raise does not count: where one
    // leaves, the cell has failed.
    if (more & (kReturns | kBreaks)) frame.certain = false;
  }
  frame.certain = certain;
  return exits;
}

int EngineWalk::WalkUncertain(const Block& block, Frame& frame) {
  const bool certain = frame.certain;
  frame.certain = false;
  const int exits = WalkBlock(block, frame);
  frame.certain = certain;
  return exits;
}

int EngineWalk::WalkIf(const Statement& statement, Frame& frame) {
  if (IsForTypeCheckers(statement.parts[0])) return WalkBlock(statement.blocks[1], frame);
  Evaluate(statement.parts[0], frame);
  const int then = WalkUncertain(statement.blocks[0], frame);
  return then | WalkUncertain(statement.blocks[1], frame);
}

int EngineWalk::WalkTry(const Statement& statement, Frame& frame) {
  // blocks: body, else, finally, handlers...
  const bool guarded = statement.blocks.size() > 3;
  int exits =
      guarded ? WalkUncertain(statement.blocks[0], frame) : WalkBlock(statement.blocks[0], frame);
  if (guarded) {
    exits |= WalkUncertain(statement.blocks[1], frame);
    for (size_t i = 3; i < statement.blocks.size(); ++i) {
      const std::string& name = statement.names[i - 3].name;
      if (!name.empty()) Bind(name, {}, frame);
      exits |= WalkUncertain(statement.blocks[i], frame);
    }
  }
  return exits | (WalkBlock(statement.blocks[2], frame) & ~kGoesOn);
}

int EngineWalk::WalkWith(const Statement& statement, Frame& frame) {
  bool passes = true;
  for (size_t i = 0; i < statement.parts.size(); i += 2) {
    const Expression& context = statement.parts[i];
    const Value manager =
        context.kind == EKind::kCall ? Evaluate(context.parts[0], frame) : Value();
    passes = passes && manager.kind == Kind::kExternal && LetsExceptionsPass(manager.text);
    Evaluate(context, frame);
    Assign(statement.parts[i + 1], {}, frame);
  }
  if (passes) return WalkBlock(statement.blocks[0], frame);
  return WalkUncertain(statement.blocks[0], frame) | kGoesOn;
}

int EngineWalk::WalkStatement(const Statement& statement, Frame& frame) {
  switch (statement.kind) {
    case SKind::kImport:
      WalkImport(statement, frame);
      return kGoesOn;
    case SKind::kFrom:
      WalkFrom(statement, frame);
      return kGoesOn;
    case SKind::kDefine:
      DefineFunction(statement, frame);
      return kGoesOn;
    case SKind::kClass:
      DefineClass(statement, frame);
      return kGoesOn;
    case SKind::kAssign: {
      const Value value = Evaluate(statement.parts[0], frame);
      for (size_t i = 1; i < statement.parts.size(); ++i) Assign(statement.parts[i], value, frame);
      return kGoesOn;
    }
    case SKind::kAnnotated:
      if (statement.has_value) {
        Assign(statement.parts[1], Evaluate(statement.parts[0], frame), frame);
      }
      return kGoesOn;
    case SKind::kReturn:
      frame.returned.push_back(Evaluate(statement.parts[0], frame));
      return kReturns;
    case SKind::kRaise:
      Evaluate(statement.parts[0], frame);
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
      Evaluate(statement.parts[0], frame);
      Assign(statement.parts[1], {}, frame);
      return (WalkUncertain(statement.blocks[0], frame) & ~kBreaks) | kGoesOn;
    case SKind::kMatch: {
      Evaluate(statement.parts[0], frame);
      for (const ImportedName& name : statement.names) Bind(name.name, {}, frame);
      int exits = kGoesOn;
      for (const Block& block : statement.blocks) exits |= WalkUncertain(block, frame);
      return exits;
    }
    case SKind::kDelete:
      for (const Expression& part : statement.parts) Assign(part, {}, frame);
      return kGoesOn;
    case SKind::kExpression:
      EvaluateAll(statement.parts, frame);
      return kGoesOn;
  }
  return kGoesOn;
}

void EngineWalk::WalkImport(const Statement& statement, Frame& frame) {
  for (const ImportedName& name : statement.names) {
    const std::string top = name.name.substr(0, name.name.find('.'));
    const std::string bound = name.as.empty() ? top : name.as;
    const std::string& seen = name.as.empty() ? top : name.name;
    if (IsLibrary(name.name)) {
      Need({.kind = Ask::Kind::kModule, .name = name.name}, statement.line, frame);
      const int ask = asks_.Of({.kind = Ask::Kind::kModule, .name = seen});
      Bind(bound, {.kind = Kind::kAsk, .number = ask}, frame);
    } else if (IsEngine(name.name)) {
      ImportModule(tables_.Module(name.name), frame.certain);
      Bind(bound, {.kind = Kind::kModule, .number = tables_.Module(seen)}, frame);
    } else {
      Bind(bound, {.kind = Kind::kExternal, .text = seen}, frame);
    }
  }
}

void EngineWalk::WalkFrom(const Statement& statement, Frame& frame) {
  std::string target = statement.text;
  if (statement.level > 0) {
    std::string package = tables_.ModuleName(frame.module);
    for (int up = tree_.IsPackage(frame.module) ? 1 : 0; up < statement.level; ++up) {
      package = ParentOf(package);
    }
    target = statement.text.empty() ? package : absl::StrCat(package, ".", statement.text);
  }
  if (IsEngine(target)) return ImportFromEngine(target, statement, frame);
  const bool library = IsLibrary(target);
  const Value from =
      library ? Need({.kind = Ask::Kind::kModule, .name = target}, statement.line, frame) : Value();
  for (const ImportedName& name : statement.names) {
    if (name.name == "*") {
      frame.scope->has_unknown_names = true;
      continue;
    }
    const std::string& bound = name.as.empty() ? name.name : name.as;
    if (!library) {
      Bind(bound, {.kind = Kind::kExternal, .text = absl::StrCat(target, ".", name.name)}, frame);
    } else if (stored_.contains(name.name)) {
      Bind(bound, {}, frame);
    } else {
      const Ask ask{.kind = Ask::Kind::kFrom, .base = from.number, .name = name.name};
      Bind(bound, Need(ask, statement.line, frame), frame);
    }
  }
}

void EngineWalk::ImportFromEngine(const std::string& target, const Statement& statement,
                                  Frame& frame) {
  const int module = tables_.Module(target);
  ImportModule(module, frame.certain);
  const std::shared_ptr<EngineScope> from = modules_[module];
  for (const ImportedName& name : statement.names) {
    if (name.name == "*") {
      if (!from || from->has_unknown_names) frame.scope->has_unknown_names = true;
      if (!from) continue;
      const std::map<std::string, Value> values = from->values;
      for (const auto& [each, value] : values) {
        if (each[0] != '_') Bind(each, value, frame);
      }
      continue;
    }
    const std::string& bound = name.as.empty() ? name.name : name.as;
    const int below = tables_.Module(absl::StrCat(target, ".", name.name));
    const bool known = from && from->values.contains(name.name);
    if (!known && FileOf(below) != SourceTree::kAbsent) {
      ImportModule(below, frame.certain);
      Bind(bound, {.kind = Kind::kModule, .number = below}, frame);
    } else {
      Bind(bound, known ? from->values[name.name] : Value(), frame);
    }
  }
}

void EngineWalk::DefineFunction(const Statement& statement, Frame& frame) {
  const FunctionDefinition& function = *statement.function;
  EvaluateAll(function.defaults, frame);
  const bool in_class = frame.klass && frame.klass->scope == frame.scope;
  Value value{.kind = Kind::kFunction,
              .function = &function,
              .closure = in_class ? frame.scope->around : frame.scope,
              .klass = in_class ? frame.klass : nullptr};
  for (auto it = function.decorators.rbegin(); it != function.decorators.rend(); ++it) {
    const Value decorator = Evaluate(*it, frame);
    const Value named = it->kind == EKind::kCall ? Evaluate(it->parts[0], frame) : decorator;
    const std::string name = named.kind == Kind::kExternal ? named.text : "";
    if (name == "builtins.staticmethod") {
      value.is_static = true;
    } else if (name == "builtins.classmethod") {
      value.is_class_method = true;
    } else if (decorator.kind == Kind::kFunction && inlining_) {
      value = CallFunction(decorator, nullptr, {value}, frame);
      if (value.kind == Kind::kFunction && in_class && !value.klass) value.klass = frame.klass;
    } else if (!KeepsSignature(name)) {
      value = {};
    }
  }
  Bind(function.name, value, frame);
}

void EngineWalk::DefineClass(const Statement& statement, Frame& frame) {
  auto klass = std::make_shared<EngineClass>();
  klass->module = frame.module;
  klass->definition = statement.klass.get();
  klass->scope =
      std::make_shared<EngineScope>(EngineScope{.module = frame.module, .around = frame.scope});
  for (const Expression& base : statement.klass->bases) {
    klass->bases.push_back(Evaluate(base, frame));
  }
  Frame inside{.scope = klass->scope,
               .module = frame.module,
               .certain = frame.certain,
               .depth = frame.depth,
               .klass = klass};
  WalkBlock(statement.klass->body, inside);
  Value value{.kind = Kind::kClass, .klass = klass};
  const auto& decorators = statement.klass->decorators;
  for (auto it = decorators.rbegin(); it != decorators.rend(); ++it) {
    const Value decorator = Evaluate(*it, frame);
    const Value named = it->kind == EKind::kCall ? Evaluate(it->parts[0], frame) : decorator;
    if (named.kind == Kind::kExternal && KeepsClass(named.text)) continue;
    value = CallValue(decorator, nullptr, {value}, statement.line, frame);
  }
  Bind(statement.klass->name, value, frame);
}

void EngineWalk::Assign(const Expression& target, const Value& value, Frame& frame) {
  switch (target.kind) {
    case EKind::kName:
      return Bind(target.text, value, frame);
    case EKind::kSequence:
      for (const Expression& part : target.parts) Assign(part, {}, frame);
      return;
    case EKind::kAttribute:
      break;
    default:
      Evaluate(target, frame);
      return;
  }
  const Value owner = Evaluate(target.parts[0], frame);
  if (owner.kind == Kind::kAsk) {
    Need({.kind = Ask::Kind::kStore, .base = owner.number, .name = target.text}, target.line,
         frame);
    stored_.insert(target.text);
    return;
  }
  std::map<std::string, Value>* values = nullptr;
  if (owner.kind == Kind::kObject) values = &owner.object->attributes;
  if (owner.kind == Kind::kClass) values = &owner.klass->scope->values;
  if (owner.kind == Kind::kModule && modules_[owner.number]) {
    values = &modules_[owner.number]->values;
  }
  if (!values) return;
  const bool replaces = values->contains(target.text) && !((*values)[target.text] == value);
  (*values)[target.text] = replaces && !frame.certain ? Value() : value;
}

// What may not happen leaves two possible values, which is one that is not known.
void EngineWalk::Bind(const std::string& name, const Value& value, Frame& frame) {
  const auto [it, added] = frame.scope->values.emplace(name, value);
  if (added || it->second == value) return;
  it->second = frame.certain ? value : Value();
}

void EngineWalk::WalkEverything() {
  const std::map<int, std::shared_ptr<EngineScope>> modules = modules_;
  for (const auto& [module, scope] : modules) {
    const SymbolTable* table = scope ? tables_.Table(tree_.File(module)) : nullptr;
    if (!table || !std::binary_search(table->imports.begin(), table->imports.end(), library_)) {
      continue;
    }
    Frame frame{.scope = scope, .module = module, .certain = false};
    WalkFunctionsIn(table->body, frame, nullptr);
  }
}

void EngineWalk::WalkFunctionsIn(const Block& block, Frame& frame,
                                 const std::shared_ptr<EngineClass>& klass) {
  for (const Statement& statement : block) {
    for (const Block& inner : statement.blocks) WalkFunctionsIn(inner, frame, klass);
    if (statement.klass) {
      const Value value = Name(statement.klass->name, frame);
      const bool same = value.kind == Kind::kClass && value.klass->definition == &*statement.klass;
      WalkFunctionsIn(statement.klass->body, frame, same ? value.klass : nullptr);
    }
    if (!statement.function) continue;
    Frame inside{.scope = std::make_shared<EngineScope>(
                     EngineScope{.module = frame.module, .around = frame.scope}),
                 .module = frame.module,
                 .certain = false,
                 .klass = klass};
    for (const Parameter& parameter : statement.function->parameters) {
      inside.scope->values[parameter.name] = {};
    }
    if (klass && IsOfEntry(klass) && !statement.function->parameters.empty()) {
      inside.object = entry_object_;
      inside.scope->values[statement.function->parameters[0].name] = {.kind = Kind::kObject,
                                                                      .object = entry_object_};
    }
    const Block* body = tables_.Body(tree_.File(frame.module), statement.function->body);
    if (body) WalkBlock(*body, inside);
  }
}

bool EngineWalk::IsOfEntry(const std::shared_ptr<EngineClass>& klass) const {
  if (!entry_object_) return false;
  std::vector<std::shared_ptr<EngineClass>> line = {entry_object_->klass};
  for (size_t i = 0; i < line.size() && line.size() < 64; ++i) {
    if (line[i] == klass) return true;
    for (const Value& base : line[i]->bases) {
      if (base.kind == Kind::kClass) line.push_back(base.klass);
    }
  }
  return false;
}

}  // namespace bkm
