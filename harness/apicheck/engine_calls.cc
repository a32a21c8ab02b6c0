// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/engine_calls.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "harness/apicheck/python_names.h"

namespace bkm {
namespace {

using Kind = EngineValue::Kind;

constexpr int kDeepestCall = 16;
constexpr int kMostCalls = 20'000;  // of functions in one walk

// Builtins that do not change their arguments.
bool OnlyLooks(const std::string& name) {
  static const std::set<std::string>& names = *new std::set<std::string>{
      "builtins.bool",  "builtins.callable",   "builtins.float", "builtins.hasattr",
      "builtins.id",    "builtins.isinstance", "builtins.int",   "builtins.issubclass",
      "builtins.len",   "builtins.print",      "builtins.repr",  "builtins.str",
      "builtins.super", "builtins.type"};
  return names.contains(name) || absl::StartsWith(name, "builtins.object.");
}

// The value that a body certainly returns; unknown where there may be several.
EngineValue Returned(const std::vector<EngineValue>& returned, int exits) {
  if ((exits & BlockWalker::kGoesOn) || returned.empty()) return {};
  const bool one = std::all_of(returned.begin(), returned.end(),
                               [&](const EngineValue& value) { return value == returned[0]; });
  return one ? returned[0] : EngineValue();
}

}  // namespace

EngineValue EngineCalls::Call(const EngineValue& callee, const CallSite& site,
                              const WalkFrame& frame) {
  switch (callee.kind) {
    case Kind::kFunction:
      return CallFunction(callee, site, frame);
    case Kind::kClass:
      return MakeObject(callee.klass, site, frame);
    case Kind::kExternal:
      return CallExternal(callee, site, frame);
    default:
      break;
  }
  EscapeAll(site.arguments);
  if (callee.kind != Kind::kAsk) return {};
  const CallShape shape = site.call
                              ? CallShape::Of(*site.call)
                              : CallShape{.by_position = static_cast<int>(site.arguments.size())};
  return parts_.use.Need({.kind = Ask::Kind::kCall, .base = callee.number, .call = shape},
                         site.line, frame);
}

const Block* EngineCalls::BodyToEnter(const EngineValue& callee, const WalkFrame& frame) {
  const FunctionDefinition& function = *callee.function;
  const bool enters = entering_ && !function.lazy && frame.depth < kDeepestCall &&
                      ++calls_ < kMostCalls && !running_.contains(&function);
  return enters ? parts_.modules.BodyOf(function, callee.closure->module) : nullptr;
}

void EngineCalls::BindParameters(const EngineValue& callee, const CallSite& site,
                                 EngineScope& scope) {
  const Expression* call = site.call;
  const std::vector<EngineValue>& arguments = site.arguments;
  std::vector<EngineValue> by_position;
  if (callee.object) by_position.push_back({.kind = Kind::kObject, .object = callee.object});
  if (callee.bound_to_class) by_position.push_back({.kind = Kind::kClass, .klass = callee.klass});
  const size_t given = call ? call->by_position : arguments.size();
  by_position.insert(by_position.end(), arguments.begin(), arguments.begin() + given);
  size_t next = 0;
  for (const Parameter& parameter : callee.function->parameters) {
    EngineValue& value = scope.values[parameter.name];
    if (parameter.kind <= Parameter::Kind::kEither && next < by_position.size()) {
      value = by_position[next++];
    } else if (call && parameter.kind != Parameter::Kind::kRest) {
      const auto name = std::find(call->names.begin(), call->names.end(), parameter.name);
      if (name != call->names.end()) value = arguments[given + (name - call->names.begin())];
    }
  }
  // The walk does not follow what *rest and **rest take.
  for (; next < by_position.size(); ++next) Escape(by_position[next]);
  if (call && (call->starred || call->spread)) EscapeAll(arguments);
}

EngineValue EngineCalls::CallFunction(const EngineValue& callee, const CallSite& site,
                                      const WalkFrame& frame) {
  const FunctionDefinition& function = *callee.function;
  const Block* body = BodyToEnter(callee, frame);
  if (!body) {
    Escape(callee);
    EscapeAll(site.arguments);
    return {};
  }
  const int module = callee.closure->module;
  WalkFrame inside{.scope = parts_.arena.NewScope(module, callee.closure),
                   .module = module,
                   .certain = frame.certain,
                   .depth = frame.depth + 1,
                   .klass = callee.klass,
                   .object = callee.object};
  BindParameters(callee, site, *inside.scope);
  running_.insert(&function);
  const int exits = parts_.walker.WalkBlock(*body, inside);
  running_.erase(&function);
  for (const std::string& name : function.globals) {
    for (EngineScope* scope = callee.closure; scope; scope = scope->around) {
      if (scope->values.contains(name)) scope->values[name] = {};
    }
  }
  return Returned(inside.returned, exits);
}

EngineValue EngineCalls::MakeObject(EngineClass* klass, const CallSite& site,
                                    const WalkFrame& frame) {
  const EngineValue made{.kind = Kind::kObject, .object = parts_.arena.NewObject(klass)};
  const EngineValue init = made.object->Attribute("__init__");
  const EngineValue make = klass->Attribute("__new__");
  if (make.kind != Kind::kExternal || !klass->definition->keywords.empty()) {
    EscapeAll(site.arguments);
    return {};
  }
  if (init.kind == Kind::kFunction) {
    CallFunction(init, site, frame);
  } else {
    if (init.kind != Kind::kExternal) made.object->escaped = true;
    EscapeAll(site.arguments);
  }
  return made;
}

EngineValue EngineCalls::CallSuper(const CallSite& site, const WalkFrame& frame) {
  const std::vector<EngineValue>& arguments = site.arguments;
  if (arguments.empty() && frame.klass && frame.object) {
    return {.kind = Kind::kSuper, .klass = frame.klass, .object = frame.object};
  }
  if (arguments.size() == 2 && arguments[0].kind == Kind::kClass && arguments[1].object) {
    return {.kind = Kind::kSuper, .klass = arguments[0].klass, .object = arguments[1].object};
  }
  if (frame.object) frame.object->escaped = true;
  return {};
}

EngineValue EngineCalls::CallExternal(const EngineValue& callee, const CallSite& site,
                                      const WalkFrame& frame) {
  const std::string& name = callee.text;
  const Expression* call = site.call;
  const std::vector<EngineValue>& arguments = site.arguments;
  const bool plain = call && call->names.empty() && !call->starred && !call->spread;
  if (name == "importlib.import_module" && plain && arguments.size() == 1) {
    return parts_.imports.ImportByText(arguments[0], site.line, frame);
  }
  if (name == "builtins.super") return CallSuper(site, frame);
  if (name == "builtins.getattr" && plain && arguments.size() == 2) {
    if (arguments[1].kind != Kind::kText) return {};
    return parts_.attributes.Get(arguments[0], arguments[1].text, site.line, frame);
  }
  if (name == "builtins.getattr" || OnlyLooks(name)) return {};
  if (name == "builtins.setattr" && arguments.size() == 3 && arguments[0].kind == Kind::kAsk) {
    parts_.use.AddStored(arguments[1].kind == Kind::kText ? arguments[1].text : "*");
  }
  EscapeAll(arguments);
  return {};
}

}  // namespace bkm
