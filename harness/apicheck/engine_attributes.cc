// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/engine_attributes.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "harness/apicheck/python_names.h"

namespace bkm {
namespace {

using Kind = EngineValue::Kind;

// An uncertain assignment of a different value leaves two possible values: unknown.
void Store(std::map<std::string, EngineValue>& values, const std::string& name,
           const EngineValue& value, bool certain) {
  const auto [it, added] = values.emplace(name, value);
  const bool differs = !added && !(it->second == value);
  it->second = differs && !certain ? EngineValue() : value;
}

}  // namespace

EngineValue EngineAttributes::Get(const EngineValue& owner, const std::string& name, int line,
                                  const WalkFrame& frame) {
  switch (owner.kind) {
    case Kind::kAsk:
      if (use_.HasStored(name) || use_.HasStored("*") || IsDunder(name)) return {};
      return use_.Need({.kind = Ask::Kind::kMember, .base = owner.number, .name = name}, line,
                       frame);
    case Kind::kModule: {
      const EngineScope* scope = modules_.Scope(owner.number);
      if (scope && scope->values.contains(name)) return scope->values.at(name);
      const int below = modules_.Number(absl::StrCat(modules_.Name(owner.number), ".", name));
      if (!modules_.IsThere(below)) return {};
      return {.kind = Kind::kModule, .number = below};
    }
    case Kind::kClass: {
      EngineValue member = owner.klass->Attribute(name);
      if (member.kind == Kind::kFunction && member.is_class_method) {
        member.klass = owner.klass;
        member.bound_to_class = true;
      }
      return member;
    }
    case Kind::kObject:
      return owner.object->Attribute(name);
    case Kind::kSuper: {
      EngineValue member = owner.klass->Attribute(name, /*skip_itself=*/true);
      if (member.kind == Kind::kFunction && !member.is_static) member.object = owner.object;
      return member;
    }
    case Kind::kExternal:
      return {.kind = Kind::kExternal, .text = absl::StrCat(owner.text, ".", name)};
    default:
      return {};
  }
}

void EngineAttributes::Set(const EngineValue& owner, const std::string& name,
                           const EngineValue& value, int line, const WalkFrame& frame) {
  if (owner.kind == Kind::kAsk) {
    use_.Need({.kind = Ask::Kind::kStore, .base = owner.number, .name = name}, line, frame);
    use_.AddStored(name);
    return;
  }
  std::map<std::string, EngineValue>* values = nullptr;
  if (owner.kind == Kind::kObject) values = &owner.object->attributes;
  if (owner.kind == Kind::kClass) values = &owner.klass->scope->values;
  EngineScope* module = owner.kind == Kind::kModule ? modules_.Scope(owner.number) : nullptr;
  if (module) values = &module->values;
  if (values) Store(*values, name, value, frame.certain);
}

}  // namespace bkm
