// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Expressions and calls of the engine.
#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/apicheck/engine_walk.h"
#include "harness/apicheck/python_names.h"

namespace bkm {
namespace {

using EKind = Expression::Kind;

constexpr int kDeepestCall = 16;
constexpr int kMostCalls = 20'000;  // of functions in one walk

// Builtins that do nothing to what they are given.
bool OnlyLooks(const std::string& name) {
  static const std::set<std::string>& names = *new std::set<std::string>{
      "builtins.bool",  "builtins.callable",   "builtins.float", "builtins.hasattr",
      "builtins.id",    "builtins.isinstance", "builtins.int",   "builtins.issubclass",
      "builtins.len",   "builtins.print",      "builtins.repr",  "builtins.str",
      "builtins.super", "builtins.type"};
  return names.contains(name) || absl::StartsWith(name, "builtins.object.");
}

}  // namespace

bool EngineWalk::IsLibrary(const std::string& dotted) const {
  return dotted == library_ || absl::StartsWith(dotted, absl::StrCat(library_, "."));
}

bool EngineWalk::IsEngine(const std::string& dotted) const {
  return dotted == tree_.package || absl::StartsWith(dotted, absl::StrCat(tree_.package, "."));
}

EngineWalk::Value EngineWalk::Need(Ask ask, int line, const Frame& frame) {
  const int number = asks_.Of(std::move(ask));
  const Grade grade = frame.certain ? phase_ : Grade::kPossible;
  const auto [it, added] = needs_.emplace(std::pair(number, std::pair(frame.module, line)), grade);
  if (!added) it->second = std::min(it->second, grade);
  return {.kind = Kind::kAsk, .number = number};
}

void EngineWalk::EvaluateAll(const std::vector<Expression>& expressions, Frame& frame) {
  for (const Expression& expression : expressions) Evaluate(expression, frame);
}

EngineWalk::Value EngineWalk::Evaluate(const Expression& expression, Frame& frame) {
  switch (expression.kind) {
    case EKind::kText:
      return {.kind = Kind::kText, .text = expression.text};
    case EKind::kFormatted: {
      EvaluateAll(expression.parts, frame);
      const bool starts = !expression.parts.empty() && expression.parts[0].kind == EKind::kText;
      return starts ? Value{.kind = Kind::kTextFrom, .text = expression.parts[0].text} : Value();
    }
    case EKind::kName:
      return Name(expression.text, frame);
    case EKind::kAttribute:
      return AttributeOf(Evaluate(expression.parts[0], frame), expression.text, expression.line,
                         frame);
    case EKind::kCall:
      return EvaluateCall(expression, frame);
    case EKind::kNamed: {
      const Value value = Evaluate(expression.parts[0], frame);
      Bind(expression.text, value, frame);
      return value;
    }
    case EKind::kParts:
    case EKind::kSequence:
      EvaluateAll(expression.parts, frame);
      return {};
    case EKind::kEither:
    case EKind::kLater: {
      const bool later = expression.kind == EKind::kLater;
      Frame inside = frame;
      if (later) {
        inside.scope = std::make_shared<EngineScope>(
            EngineScope{.module = frame.module, .around = frame.scope});
        for (const std::string& name : expression.names) inside.scope->values[name] = {};
      } else {
        Evaluate(expression.parts[0], frame);
      }
      inside.certain = false;
      for (size_t i = later ? 0 : 1; i < expression.parts.size(); ++i) {
        Evaluate(expression.parts[i], inside);
      }
      return {};
    }
    default:
      return {};
  }
}

EngineWalk::Value EngineWalk::Name(const std::string& name, const Frame& frame) {
  for (const EngineScope* scope = frame.scope.get(); scope; scope = scope->around.get()) {
    const auto found = scope->values.find(name);
    if (found != scope->values.end()) return found->second;
    if (scope->has_unknown_names) return {};
  }
  return {.kind = Kind::kExternal, .text = absl::StrCat("builtins.", name)};
}

EngineWalk::Value EngineWalk::ClassAttribute(const std::shared_ptr<EngineClass>& klass,
                                             const std::string& name, bool skip_itself) {
  const auto own = klass->scope->values.find(name);
  if (!skip_itself && own != klass->scope->values.end()) return own->second;
  if (!klass->definition->keywords.empty()) return {};
  int real_bases = 0;
  for (const Value& base : klass->bases) {
    if (base.kind != Kind::kExternal || !AddsNoAttributes(base.text)) ++real_bases;
  }
  if (real_bases > 1) return {};
  for (const Value& base : klass->bases) {
    if (base.kind == Kind::kClass) return ClassAttribute(base.klass, name);
    if (base.kind != Kind::kExternal || !AddsNoAttributes(base.text)) return {};
  }
  return {.kind = Kind::kExternal, .text = absl::StrCat("builtins.object.", name)};
}

EngineWalk::Value EngineWalk::ObjectAttribute(const std::shared_ptr<EngineObject>& object,
                                              const std::string& name) {
  const auto own = object->attributes.find(name);
  if (own != object->attributes.end()) return object->escaped ? Value() : own->second;
  Value value = ClassAttribute(object->klass, name);
  if (value.kind == Kind::kFunction && value.is_class_method) {
    value.klass = object->klass;
    value.bound_to_class = true;
  } else if (value.kind == Kind::kFunction && !value.is_static) {
    value.object = object;
  } else if (value.kind == Kind::kExternal && value.text == "builtins.object.__init__") {
    return value;
  } else if (value.kind != Kind::kFunction) {
    return {};  // a value of the class may have been replaced on the object
  }
  return value;
}

EngineWalk::Value EngineWalk::AttributeOf(const Value& value, const std::string& name, int line,
                                          Frame& frame) {
  switch (value.kind) {
    case Kind::kAsk:
      if (stored_.contains(name) || stored_.contains("*") || IsDunder(name)) return {};
      return Need({.kind = Ask::Kind::kMember, .base = value.number, .name = name}, line, frame);
    case Kind::kModule: {
      const std::shared_ptr<EngineScope> scope = modules_[value.number];
      if (scope && scope->values.contains(name)) return scope->values[name];
      const int below = tables_.Module(absl::StrCat(tables_.ModuleName(value.number), ".", name));
      if (FileOf(below) == SourceTree::kAbsent) return {};
      return {.kind = Kind::kModule, .number = below};
    }
    case Kind::kClass: {
      Value member = ClassAttribute(value.klass, name);
      if (member.kind == Kind::kFunction && member.is_class_method) {
        member.klass = value.klass;
        member.bound_to_class = true;
      }
      return member;
    }
    case Kind::kObject:
      return ObjectAttribute(value.object, name);
    case Kind::kSuper: {
      Value member = ClassAttribute(value.klass, name, /*skip_itself=*/true);
      if (member.kind == Kind::kFunction && !member.is_static) member.object = value.object;
      return member;
    }
    case Kind::kExternal:
      return {.kind = Kind::kExternal, .text = absl::StrCat(value.text, ".", name)};
    default:
      return {};
  }
}

// Code that is not read got hold of an object, and may have changed it.
void EngineWalk::Escape(const Value& value) {
  if (value.object) value.object->escaped = true;
}

EngineWalk::Value EngineWalk::EvaluateCall(const Expression& call, Frame& frame) {
  const Expression& function = call.parts[0];
  Value owner;
  Value callee;
  if (function.kind == EKind::kAttribute) {
    owner = Evaluate(function.parts[0], frame);
    callee = AttributeOf(owner, function.text, function.line, frame);
  } else {
    callee = Evaluate(function, frame);
  }
  std::vector<Value> arguments;
  for (size_t i = 1; i < call.parts.size(); ++i) {
    arguments.push_back(Evaluate(call.parts[i], frame));
  }
  if (callee.kind == Kind::kUnknown) Escape(owner);
  return CallValue(callee, &call, arguments, call.line, frame);
}

EngineWalk::Value EngineWalk::CallValue(const Value& callee, const Expression* call,
                                        const std::vector<Value>& arguments, int line,
                                        Frame& frame) {
  switch (callee.kind) {
    case Kind::kFunction:
      return CallFunction(callee, call, arguments, frame);
    case Kind::kClass:
      return MakeObject(callee, call, arguments, line, frame);
    case Kind::kExternal:
      return CallExternal(callee, call, arguments, line, frame);
    default:
      break;
  }
  for (const Value& argument : arguments) Escape(argument);
  if (callee.kind != Kind::kAsk) return {};
  const CallShape shape =
      call ? CallShape::Of(*call) : CallShape{.by_position = static_cast<int>(arguments.size())};
  return Need({.kind = Ask::Kind::kCall, .base = callee.number, .call = shape}, line, frame);
}

EngineWalk::Value EngineWalk::CallFunction(const Value& callee, const Expression* call,
                                           const std::vector<Value>& arguments, Frame& frame) {
  const FunctionDefinition& function = *callee.function;
  const Block* body = nullptr;
  if (inlining_ && !function.lazy && frame.depth < kDeepestCall && ++calls_ < kMostCalls &&
      !running_.contains(&function)) {
    body = tables_.Body(tree_.File(callee.closure->module), function.body);
  }
  if (!body) {
    Escape(callee);
    for (const Value& argument : arguments) Escape(argument);
    return {};
  }
  Frame inside{.scope = std::make_shared<EngineScope>(
                   EngineScope{.module = callee.closure->module, .around = callee.closure}),
               .module = callee.closure->module,
               .certain = frame.certain,
               .depth = frame.depth + 1,
               .klass = callee.klass,
               .object = callee.object};
  std::vector<Value> by_position;
  if (callee.object) by_position.push_back({.kind = Kind::kObject, .object = callee.object});
  if (callee.bound_to_class) by_position.push_back({.kind = Kind::kClass, .klass = callee.klass});
  const size_t given = call ? call->by_position : arguments.size();
  by_position.insert(by_position.end(), arguments.begin(), arguments.begin() + given);
  size_t next = 0;
  for (const Parameter& parameter : function.parameters) {
    Value& value = inside.scope->values[parameter.name];
    if (parameter.kind <= Parameter::Kind::kEither && next < by_position.size()) {
      value = by_position[next++];
    } else if (call && parameter.kind != Parameter::Kind::kRest) {
      const auto name = std::find(call->names.begin(), call->names.end(), parameter.name);
      if (name != call->names.end()) value = arguments[given + (name - call->names.begin())];
    }
  }
  // What goes into *rest and **rest is lost to us.
  for (; next < by_position.size(); ++next) Escape(by_position[next]);
  if (call && (call->starred || call->spread)) {
    for (const Value& argument : arguments) Escape(argument);
  }
  running_.insert(&function);
  const int exits = WalkBlock(*body, inside);
  running_.erase(&function);
  for (const std::string& name : function.globals) {
    for (EngineScope* scope = callee.closure.get(); scope; scope = scope->around.get()) {
      if (scope->values.contains(name)) scope->values[name] = {};
    }
  }
  const auto& returned = inside.returned;
  const bool one = !(exits & kGoesOn) && !returned.empty() &&
                   std::all_of(returned.begin(), returned.end(),
                               [&](const Value& value) { return value == returned[0]; });
  return one ? returned[0] : Value();
}

EngineWalk::Value EngineWalk::MakeObject(const Value& klass, const Expression* call,
                                         const std::vector<Value>& arguments, int, Frame& frame) {
  Value made{.kind = Kind::kObject, .object = std::make_shared<EngineObject>()};
  made.object->klass = klass.klass;
  const Value init = ObjectAttribute(made.object, "__init__");
  const Value make = ClassAttribute(klass.klass, "__new__");
  if (make.kind != Kind::kExternal || !klass.klass->definition->keywords.empty()) {
    for (const Value& argument : arguments) Escape(argument);
    return {};
  }
  if (init.kind == Kind::kFunction) {
    CallFunction(init, call, arguments, frame);
  } else {
    if (init.kind != Kind::kExternal) made.object->escaped = true;
    for (const Value& argument : arguments) Escape(argument);
  }
  return made;
}

EngineWalk::Value EngineWalk::ImportByText(const Value& text, int line, Frame& frame) {
  if (text.kind == Kind::kText && IsLibrary(text.text)) {
    return Need({.kind = Ask::Kind::kModule, .name = text.text}, line, frame);
  }
  if (text.kind == Kind::kText && IsEngine(text.text)) {
    ImportModule(tables_.Module(text.text), frame.certain);
    return {.kind = Kind::kModule, .number = tables_.Module(text.text)};
  }
  const bool ours = absl::StartsWith(text.text, absl::StrCat(library_, "."));
  if (text.kind == Kind::kTextFrom && ours && absl::EndsWith(text.text, ".")) {
    return Need({.kind = Ask::Kind::kAnyModule, .name = text.text}, line, frame);
  }
  return {};
}

EngineWalk::Value EngineWalk::CallExternal(const Value& callee, const Expression* call,
                                           const std::vector<Value>& arguments, int line,
                                           Frame& frame) {
  const std::string& name = callee.text;
  const bool plain = call && call->names.empty() && !call->starred && !call->spread;
  if (name == "importlib.import_module" && plain && arguments.size() == 1) {
    return ImportByText(arguments[0], line, frame);
  }
  if (name == "builtins.super") {
    if (arguments.empty() && frame.klass && frame.object) {
      return {.kind = Kind::kSuper, .klass = frame.klass, .object = frame.object};
    }
    if (arguments.size() == 2 && arguments[0].kind == Kind::kClass && arguments[1].object) {
      return {.kind = Kind::kSuper, .klass = arguments[0].klass, .object = arguments[1].object};
    }
    if (frame.object) frame.object->escaped = true;
    return {};
  }
  if (name == "builtins.getattr" && plain && arguments.size() == 2) {
    if (arguments[1].kind != Kind::kText) return {};
    return AttributeOf(arguments[0], arguments[1].text, line, frame);
  }
  if (name == "builtins.getattr" || OnlyLooks(name)) return {};
  if (name == "builtins.setattr" && arguments.size() == 3 && arguments[0].kind == Kind::kAsk) {
    stored_.insert(arguments[1].kind == Kind::kText ? arguments[1].text : "*");
  }
  for (const Value& argument : arguments) Escape(argument);
  return {};
}

}  // namespace bkm
