// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Classes: inheritance, constructor arguments, and attributes of classes and instances.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/apicheck/library.h"
#include "harness/apicheck/python_names.h"

namespace bkm {
namespace {

using EKind = Expression::Kind;
using SKind = Statement::Kind;

constexpr int kDeepest = 32;  // levels of inheritance; more is a circle

bool SameClass(const LibraryValue& a, const LibraryValue& b) {
  return a.kind == b.kind && a.klass == b.klass && a.module == b.module && a.name == b.name;
}

// C3 linearization, as type.mro(); nullopt where Python refuses the order.
std::optional<std::vector<LibraryValue>> Merge(std::vector<std::vector<LibraryValue>> lists) {
  std::vector<LibraryValue> merged;
  for (;;) {
    std::erase_if(lists, [](const auto& list) { return list.empty(); });
    if (lists.empty()) return merged;
    const LibraryValue* next = nullptr;
    for (const auto& list : lists) {
      const auto in_tail = [&](const auto& other) {
        return std::any_of(other.begin() + 1, other.end(),
                           [&](const LibraryValue& v) { return SameClass(v, list[0]); });
      };
      if (std::none_of(lists.begin(), lists.end(), in_tail)) {
        next = &list[0];
        break;
      }
    }
    if (!next) return std::nullopt;
    merged.push_back(*next);
    for (auto& list : lists) {
      if (SameClass(list[0], merged.back())) list.erase(list.begin());
    }
  }
}

// "ClassVar" for ClassVar, typing.ClassVar and ClassVar[int].
std::string Outermost(const Expression& annotation) {
  if (annotation.kind == EKind::kOf) return Outermost(annotation.parts[0]);
  return annotation.kind == EKind::kName || annotation.kind == EKind::kAttribute ? annotation.text
                                                                                 : "";
}

// The flag's value; `fallback` if it is absent; nullopt if it is computed.
std::optional<bool> FlagOf(const Flags& flags, const char* name, bool fallback) {
  if (flags.contains("*")) return std::nullopt;
  const auto found = flags.find(name);
  return found == flags.end() ? std::optional<bool>(fallback) : found->second;
}

bool StoresIn(const Block& body, const std::string& name) {
  for (const Statement& statement : body) {
    if (statement.function) {
      for (const std::string& stored : statement.function->stores) {
        if (stored == name || stored == "*") return true;
      }
    }
    for (const Block& block : statement.blocks) {
      if (StoresIn(block, name)) return true;
    }
  }
  return false;
}

}  // namespace

Library::Scope Library::ScopeIn(const LibraryValue& klass) {
  Scope scope{
      .module = klass.module, .around = klass.around, .prefix = absl::StrCat(klass.name, ".")};
  scope.around.push_back(klass.klass);
  return scope;
}

std::optional<std::vector<LibraryValue>> Library::Ancestry(const LibraryValue& klass, int depth) {
  if (klass.kind == Kind::kExternal) return std::vector<LibraryValue>{klass};
  if (klass.kind != Kind::kClass || depth > kDeepest) return std::nullopt;
  const Scope outside{.module = klass.module, .around = klass.around};
  std::vector<LibraryValue> bases;
  std::vector<std::vector<LibraryValue>> lists;
  for (const Expression& expression : klass.klass->bases) {
    const std::vector<LibraryValue> values = Evaluate(expression, outside);
    if (values.size() != 1) return std::nullopt;
    if (values[0].kind == Kind::kExternal && values[0].name == "builtins.object") continue;
    auto above = Ancestry(values[0], depth + 1);
    if (!above) return std::nullopt;
    bases.push_back(values[0]);
    lists.push_back(*std::move(above));
  }
  lists.push_back(bases);
  auto merged = Merge(std::move(lists));
  if (merged) merged->insert(merged->begin(), klass);
  return merged;
}

const Flags* Library::DataclassFlags(const LibraryValue& klass) {
  const Scope outside{.module = klass.module, .around = klass.around};
  for (size_t i = 0; i < klass.klass->decorators.size(); ++i) {
    if (DecoratorName(klass.klass->decorators[i], outside) == "dataclasses.dataclass") {
      return &klass.klass->decorator_flags[i];
    }
  }
  return nullptr;
}

// Adds the dataclass fields that `klass` itself declares; false if they are unknown.
bool Library::AddFields(const LibraryValue& klass, std::vector<Parameter>& fields) {
  const Names& names = tables_.NamesIn(*klass.klass);
  if (names.has_conditional_annotations) return false;
  std::optional<bool> by_name = FlagOf(*DataclassFlags(klass), "kw_only", false);
  for (const Statement* statement : names.annotated) {
    if (!by_name) return false;
    const Expression& value = statement->parts[0];
    const std::string kind = Outermost(statement->parts[2]);
    if (kind == "ClassVar") continue;
    if (kind == "KW_ONLY") {
      by_name = true;
      continue;
    }
    Parameter field{.name = statement->parts[1].text,
                    .kind = *by_name ? Parameter::Kind::kByName : Parameter::Kind::kEither,
                    .has_default = statement->has_value};
    bool in_init = true;
    if (statement->field && DecoratorName(value, ScopeIn(klass)) == "dataclasses.field") {
      const Flags& flags = *statement->field;
      const std::optional<bool> init = FlagOf(flags, "init", true);
      const std::optional<bool> named = FlagOf(flags, "kw_only", *by_name);
      if (!init || !named) return false;
      in_init = *init;
      field.kind = *named ? Parameter::Kind::kByName : Parameter::Kind::kEither;
      field.has_default = flags.contains("default") || flags.contains("default_factory");
    }
    const auto same = [&](const Parameter& other) { return other.name == field.name; };
    const auto old = std::find_if(fields.begin(), fields.end(), same);
    if (!in_init) {
      if (old != fields.end()) fields.erase(old);
    } else if (old != fields.end()) {
      *old = field;
    } else {
      fields.push_back(field);
    }
  }
  return true;
}

std::optional<std::vector<Parameter>> Library::DataclassParameters(
    const std::vector<LibraryValue>& ancestry) {
  std::vector<Parameter> fields;
  for (auto it = ancestry.rbegin(); it != ancestry.rend(); ++it) {
    if (it->kind == Kind::kExternal) {
      if (!AddsNoAttributes(it->name)) return std::nullopt;
    } else if (DataclassFlags(*it) && !AddFields(*it, fields)) {
      return std::nullopt;
    }
  }
  std::stable_partition(fields.begin(), fields.end(), [](const Parameter& field) {
    return field.kind != Parameter::Kind::kByName;
  });
  return fields;
}

Library::Constructor Library::NamedTupleConstructor(const LibraryValue& klass) {
  Constructor constructor{.known = true, .where = Where(klass.module, klass.klass->line)};
  for (const Statement* field : tables_.NamesIn(*klass.klass).annotated) {
    constructor.parameters.push_back(
        {field->parts[1].text, Parameter::Kind::kEither, field->has_value});
  }
  return constructor;
}

bool Library::IsMadeByInit(const LibraryValue& ancestor) {
  if (ancestor.kind == Kind::kExternal) return IsPlainBase(ancestor.name);
  return ancestor.klass->keywords.empty() &&
         !tables_.NamesIn(*ancestor.klass).bound.contains("__new__");
}

Library::Constructor Library::DefinedConstructor(const LibraryValue& klass,
                                                 const std::vector<Binding>& inits) {
  std::vector<LibraryValue> values;
  for (const Binding& binding : inits) {
    const auto more = ValuesOf(binding, "__init__", ScopeIn(klass));
    values.insert(values.end(), more.begin(), more.end());
  }
  if (values.size() != 1 || values[0].kind != Kind::kFunction || values[0].is_static) return {};
  return {true, values[0].function->parameters, 1, Where(klass.module, values[0].function->line)};
}

Library::Constructor Library::ConstructorOf(const LibraryValue& klass) {
  const auto ancestry = Ancestry(klass);
  if (!ancestry || IsPatched("__init__", /*anything=*/false)) return {};
  const bool tuple = ancestry->size() == 2 && (*ancestry)[1].name == "typing.NamedTuple";
  if (tuple) return NamedTupleConstructor(klass);
  const auto plain = [&](const LibraryValue& ancestor) { return IsMadeByInit(ancestor); };
  if (!std::all_of(ancestry->begin(), ancestry->end(), plain)) return {};
  for (auto ancestor = ancestry->begin(); ancestor != ancestry->end(); ++ancestor) {
    if (ancestor->kind == Kind::kExternal) {
      if (!AddsNoAttributes(ancestor->name)) return {};
      continue;
    }
    const auto& bound = tables_.NamesIn(*ancestor->klass).bound;
    const auto own = bound.find("__init__");
    if (own != bound.end()) return DefinedConstructor(*ancestor, own->second);
    const Flags* flags = DataclassFlags(*ancestor);
    if (!flags) continue;
    const std::optional<bool> init = FlagOf(*flags, "init", true);
    if (!init) return {};
    if (!*init) continue;
    auto parameters = DataclassParameters({ancestor, ancestry->end()});
    if (!parameters) return {};
    return {true, *std::move(parameters), 0, Where(ancestor->module, ancestor->klass->line)};
  }
  // What is left is object's constructor. A protocol that nothing implements has one of its own.
  const bool protocol = std::any_of(
      ancestry->begin(), ancestry->end(),
      [](const LibraryValue& ancestor) { return absl::EndsWith(ancestor.name, "Protocol"); });
  if (protocol) return {};
  return {.known = true, .where = Where(klass.module, klass.klass->line)};
}

std::optional<std::vector<LibraryValue>> Library::ClassMember(
    const std::vector<LibraryValue>& ancestry, const std::string& name) {
  for (const LibraryValue& ancestor : ancestry) {
    if (ancestor.kind == Kind::kExternal) {
      // Its unknown members hide those of later ancestors.
      if (!AddsNoAttributes(ancestor.name)) return std::vector<LibraryValue>(1);
      continue;
    }
    const Names& names = tables_.NamesIn(*ancestor.klass);
    const auto bound = names.bound.find(name);
    if (bound == names.bound.end()) continue;
    std::vector<LibraryValue> values;
    for (const Binding& binding : bound->second) {
      const auto more = ValuesOf(binding, name, ScopeIn(ancestor));
      values.insert(values.end(), more.begin(), more.end());
    }
    return values;
  }
  return std::nullopt;
}

bool Library::MayHave(const LibraryValue& ancestor, const std::string& name, bool instance) {
  if (ancestor.kind == Kind::kExternal) return false;  // ClassMember decides these
  const Names& names = tables_.NamesIn(*ancestor.klass);
  if (!ancestor.klass->keywords.empty() || StoresIn(ancestor.klass->body, name)) return true;
  const auto declares = [&](const Statement* s) { return s->parts[1].text == name; };
  if (std::find(names.declared.begin(), names.declared.end(), name) != names.declared.end() ||
      std::any_of(names.annotated.begin(), names.annotated.end(), declares)) {
    return true;
  }
  if (!instance) return false;
  const auto& slots = ancestor.klass->slots;
  return names.bound.contains("__getattr__") || names.bound.contains("__getattribute__") ||
         (slots && (std::find(slots->begin(), slots->end(), name) != slots->end() ||
                    std::find(slots->begin(), slots->end(), "*") != slots->end()));
}

LibraryAnswer Library::ClassAttribute(const LibraryValue& klass, const std::string& name) {
  const auto ancestry = Ancestry(klass);
  if (!ancestry) return {std::vector<LibraryValue>(1), std::nullopt};
  if (auto values = ClassMember(*ancestry, name)) {
    for (LibraryValue& value : *values) {
      if (value.kind == Kind::kFunction && value.is_class_method) value.kind = Kind::kMethod;
    }
    return {*std::move(values), std::nullopt};
  }
  const bool open = IsDunder(name) || name == "mro" || name == "register" ||
                    IsPatched(name, /*anything=*/false) ||
                    std::any_of(ancestry->begin(), ancestry->end(), [&](const LibraryValue& v) {
                      return MayHave(v, name, /*instance=*/false);
                    });
  if (open) return {std::vector<LibraryValue>(1), std::nullopt};
  return {{},
          Failure{"missing-attribute",
                  absl::StrCat(tables_.ModuleName(klass.module), ".", klass.name, " has no ", name),
                  Where(klass.module, klass.klass->line)}};
}

LibraryAnswer Library::InstanceAttribute(const LibraryValue& value, const std::string& name) {
  LibraryValue klass = value;
  klass.kind = Kind::kClass;
  const auto ancestry = Ancestry(klass);
  if (!ancestry) return {std::vector<LibraryValue>(1), std::nullopt};
  // An attribute of the instance hides one of its class.
  const bool stored = IsPatched(name, /*anything=*/true) ||
                      std::any_of(ancestry->begin(), ancestry->end(), [&](const LibraryValue& v) {
                        return MayHave(v, name, /*instance=*/true);
                      });
  if (stored || IsDunder(name)) return {std::vector<LibraryValue>(1), std::nullopt};
  if (auto values = ClassMember(*ancestry, name)) {
    for (LibraryValue& member : *values) {
      if (member.kind == Kind::kFunction && !member.is_static) member.kind = Kind::kMethod;
    }
    return {*std::move(values), std::nullopt};
  }
  return {{},
          Failure{"missing-attribute",
                  absl::StrCat("a ", tables_.ModuleName(klass.module), ".", klass.name, " has no ",
                               name),
                  Where(klass.module, klass.klass->line)}};
}

LibraryAnswer Library::Attribute(const LibraryValue& value, const std::string& name) {
  switch (value.kind) {
    case Kind::kModule:
      return Member(value.module, name);
    case Kind::kClass:
      return ClassAttribute(value, name);
    case Kind::kInstance:
      return InstanceAttribute(value, name);
    case Kind::kExternal:
      return {{LibraryValue{.kind = Kind::kExternal, .name = absl::StrCat(value.name, ".", name)}},
              std::nullopt};
    default:
      return {std::vector<LibraryValue>(1), std::nullopt};
  }
}

LibraryAnswer Library::Call(const LibraryValue& value, const CallShape& call) {
  LibraryAnswer unknown{std::vector<LibraryValue>(1), std::nullopt};
  if (value.kind == Kind::kFunction || value.kind == Kind::kMethod) {
    const bool bound = value.kind == Kind::kMethod;
    auto failure = Misfit(value.function->parameters, bound ? 1 : 0, call);
    if (!failure) return unknown;
    failure->where = Where(value.module, value.function->line);
    return {{}, failure};
  }
  if (value.kind != Kind::kClass) return unknown;
  const Constructor constructor = ConstructorOf(value);
  if (!constructor.known) return unknown;
  if (auto failure = Misfit(constructor.parameters, constructor.bound, call)) {
    failure->where = constructor.where;
    return {{}, failure};
  }
  LibraryValue instance = value;
  instance.kind = Kind::kInstance;
  return {{instance}, std::nullopt};
}

bool Library::IsSlotted(const LibraryValue& klass) {
  if (klass.kind == Kind::kExternal) return AddsNoAttributes(klass.name);
  if (klass.klass->slots) {
    const auto& slots = *klass.klass->slots;
    return std::find(slots.begin(), slots.end(), "__dict__") == slots.end() &&
           std::find(slots.begin(), slots.end(), "*") == slots.end();
  }
  const Flags* flags = DataclassFlags(klass);
  return flags && FlagOf(*flags, "slots", false) == std::optional<bool>(true);
}

LibraryAnswer Library::Store(const LibraryValue& value, const std::string& name) {
  LibraryAnswer fits{std::vector<LibraryValue>(1), std::nullopt};
  if (value.kind != Kind::kInstance) return fits;
  LibraryValue klass = value;
  klass.kind = Kind::kClass;
  const auto ancestry = Ancestry(klass);
  if (!ancestry) return fits;
  for (const LibraryValue& ancestor : *ancestry) {
    if (!IsSlotted(ancestor)) return fits;
    if (ancestor.kind == Kind::kExternal) continue;
    const Names& names = tables_.NamesIn(*ancestor.klass);
    const auto& slots = ancestor.klass->slots;
    const auto declares = [&](const Statement* s) { return s->parts[1].text == name; };
    if (names.bound.contains("__setattr__") || names.bound.contains(name) ||
        names.has_conditional_annotations ||
        std::any_of(names.annotated.begin(), names.annotated.end(), declares) ||
        (slots && std::find(slots->begin(), slots->end(), name) != slots->end())) {
      return fits;
    }
  }
  return {{},
          Failure{"no-such-slot",
                  absl::StrCat("a ", tables_.ModuleName(klass.module), ".", klass.name,
                               " has slots, and none is called ", name),
                  Where(klass.module, klass.klass->line)}};
}

}  // namespace bkm
