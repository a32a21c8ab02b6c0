// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/engine_value.h"

#include "absl/strings/str_cat.h"
#include "harness/apicheck/python_names.h"

namespace bkm {
namespace {

using Kind = EngineValue::Kind;

// A safety net: a class hierarchy of the engine is far smaller.
constexpr size_t kMostAncestors = 64;

}  // namespace

EngineValue EngineScope::LookUp(const std::string& name) const {
  for (const EngineScope* scope = this; scope; scope = scope->around) {
    const auto found = scope->values.find(name);
    if (found != scope->values.end()) return found->second;
    if (scope->has_unknown_names) return {};
  }
  return {.kind = Kind::kExternal, .text = absl::StrCat("builtins.", name)};
}

void EngineScope::Bind(const std::string& name, const EngineValue& value, bool certain) {
  const auto [it, added] = values.emplace(name, value);
  if (added || it->second == value) return;
  it->second = certain ? value : EngineValue();
}

EngineValue EngineClass::Attribute(const std::string& name, bool skip_itself) const {
  const auto own = scope->values.find(name);
  if (!skip_itself && own != scope->values.end()) return own->second;
  if (!definition->keywords.empty()) return {};
  int real_bases = 0;
  for (const EngineValue& base : bases) {
    if (base.kind != Kind::kExternal || !AddsNoAttributes(base.text)) ++real_bases;
  }
  if (real_bases > 1) return {};
  for (const EngineValue& base : bases) {
    if (base.kind == Kind::kClass) return base.klass->Attribute(name);
    if (base.kind != Kind::kExternal || !AddsNoAttributes(base.text)) return {};
  }
  return {.kind = Kind::kExternal, .text = absl::StrCat("builtins.object.", name)};
}

bool EngineClass::Inherits(const EngineClass* ancestor) const {
  std::vector<const EngineClass*> line = {this};
  for (size_t i = 0; i < line.size() && line.size() < kMostAncestors; ++i) {
    if (line[i] == ancestor) return true;
    for (const EngineValue& base : line[i]->bases) {
      if (base.kind == Kind::kClass) line.push_back(base.klass);
    }
  }
  return false;
}

EngineValue EngineObject::Attribute(const std::string& name) {
  const auto own = attributes.find(name);
  if (own != attributes.end()) return escaped ? EngineValue() : own->second;
  EngineValue value = klass->Attribute(name);
  if (value.kind == Kind::kFunction && value.is_class_method) {
    value.klass = klass;
    value.bound_to_class = true;
  } else if (value.kind == Kind::kFunction && !value.is_static) {
    value.object = this;
  } else if (value.kind == Kind::kExternal && value.text == "builtins.object.__init__") {
    return value;
  } else if (value.kind != Kind::kFunction) {
    return {};  // the object may have an attribute that hides the class's
  }
  return value;
}

void Escape(const EngineValue& value) {
  if (value.object) value.object->escaped = true;
}

void EscapeAll(const std::vector<EngineValue>& values) {
  for (const EngineValue& value : values) Escape(value);
}

}  // namespace bkm
