// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/engine_imports.h"

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/apicheck/dotted_name.h"

namespace bkm {
namespace {

using Kind = EngineValue::Kind;

}  // namespace

void EngineImports::Import(const Statement& statement, WalkFrame& frame) {
  for (const ImportedName& name : statement.names) {
    const std::string top = name.name.substr(0, name.name.find('.'));
    const std::string bound = name.as.empty() ? top : name.as;
    const std::string& seen = name.as.empty() ? top : name.name;
    EngineValue value;
    if (use_.Owns(name.name)) {
      use_.Need({.kind = Ask::Kind::kModule, .name = name.name}, statement.line, frame);
      value = use_.Module(seen);
    } else if (modules_.Own(name.name)) {
      modules_.Import(modules_.Number(name.name), frame.certain);
      value = {.kind = Kind::kModule, .number = modules_.Number(seen)};
    } else {
      value = {.kind = Kind::kExternal, .text = seen};
    }
    frame.scope->Bind(bound, value, frame.certain);
  }
}

void EngineImports::ImportFrom(const Statement& statement, WalkFrame& frame) {
  const std::string target =
      ImportTarget(statement, modules_.Name(frame.module), modules_.IsPackage(frame.module));
  if (modules_.Own(target)) return ImportFromEngine(target, statement, frame);
  const bool library = use_.Owns(target);
  EngineValue from;
  if (library)
    from = use_.Need({.kind = Ask::Kind::kModule, .name = target}, statement.line, frame);
  for (const ImportedName& name : statement.names) {
    if (name.name == "*") {
      frame.scope->has_unknown_names = true;
      continue;
    }
    EngineValue value;
    if (!library) {
      value = {.kind = Kind::kExternal, .text = absl::StrCat(target, ".", name.name)};
    } else if (!use_.HasStored(name.name)) {
      const Ask ask{.kind = Ask::Kind::kFrom, .base = from.number, .name = name.name};
      value = use_.Need(ask, statement.line, frame);
    }
    frame.scope->Bind(name.as.empty() ? name.name : name.as, value, frame.certain);
  }
}

void EngineImports::ImportFromEngine(const std::string& target, const Statement& statement,
                                     WalkFrame& frame) {
  const int module = modules_.Number(target);
  modules_.Import(module, frame.certain);
  const EngineScope* from = modules_.Scope(module);
  for (const ImportedName& name : statement.names) {
    if (name.name == "*") {
      if (!from || from->has_unknown_names) frame.scope->has_unknown_names = true;
      if (!from) continue;
      const std::map<std::string, EngineValue> values = from->values;
      for (const auto& [each, value] : values) {
        if (each[0] != '_') frame.scope->Bind(each, value, frame.certain);
      }
      continue;
    }
    const int below = modules_.Number(absl::StrCat(target, ".", name.name));
    const bool known = from && from->values.contains(name.name);
    EngineValue value;
    if (known) {
      value = from->values.at(name.name);
    } else if (modules_.IsThere(below)) {
      modules_.Import(below, frame.certain);
      value = {.kind = Kind::kModule, .number = below};
    }
    frame.scope->Bind(name.as.empty() ? name.name : name.as, value, frame.certain);
  }
}

EngineValue EngineImports::ImportByText(const EngineValue& text, int line, const WalkFrame& frame) {
  if (text.kind == Kind::kText && use_.Owns(text.text)) {
    return use_.Need({.kind = Ask::Kind::kModule, .name = text.text}, line, frame);
  }
  if (text.kind == Kind::kText && modules_.Own(text.text)) {
    const int module = modules_.Number(text.text);
    modules_.Import(module, frame.certain);
    return {.kind = Kind::kModule, .number = module};
  }
  const bool below = absl::StartsWith(text.text, absl::StrCat(use_.library(), "."));
  if (text.kind == Kind::kTextFrom && below && absl::EndsWith(text.text, ".")) {
    return use_.Need({.kind = Ask::Kind::kAnyModule, .name = text.text}, line, frame);
  }
  return {};
}

}  // namespace bkm
