// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Modules and names: which exist, and their values.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/apicheck/dotted_name.h"
#include "harness/apicheck/library.h"
#include "harness/apicheck/python_names.h"

namespace bkm {
namespace {

using EKind = Expression::Kind;
using SKind = Statement::Kind;

LibraryValue External(std::string name) {
  return {.kind = LibraryValue::Kind::kExternal, .name = std::move(name)};
}

std::optional<Failure> FailureOf(std::string reason, std::string problem, std::string where) {
  return Failure{std::move(reason), std::move(problem), std::move(where)};
}

}  // namespace

std::string Library::Where(int module, int line) const {
  const std::string path = tree_.PathOf(module, tables_.ModuleName(module));
  return absl::StrCat(tree_.root, path, line > 0 ? absl::StrCat(":", line) : "");
}

bool Library::IsOurs(const std::string& dotted) const { return IsWithin(dotted, tree_.package); }

LibraryValue Library::ModuleValue(const std::string& dotted) {
  return {.kind = Kind::kModule, .module = tables_.Module(dotted), .name = dotted};
}

std::vector<int> Library::ModulesAfter(const std::string& prefix) const {
  std::vector<int> found;
  for (const int module : tree_.modules) {
    const std::string& name = tables_.ModuleName(module);
    if (absl::StartsWith(name, prefix) && name.find('.', prefix.size()) == name.npos) {
      found.push_back(module);
    }
  }
  return found;
}

std::vector<std::string> Library::Definers(const std::string& name) {
  std::vector<std::string> found;
  for (const int module : tree_.modules) {
    const auto bound = NamesIn(module).bound.find(name);
    if (bound == NamesIn(module).bound.end()) continue;
    const Statement* statement = bound->second[0].statement;
    if (statement && (statement->function || statement->klass)) {
      found.push_back(tables_.ModuleName(module));
    }
  }
  return found;
}

LibraryAnswer Library::Import(int module) {
  if (std::optional<Failure> failure = Run(module)) return {{}, failure};
  return {{ModuleValue(tables_.ModuleName(module))}, std::nullopt};
}

std::optional<Failure> Library::Run(int module) {
  const auto known = ran_.find(module);
  if (known != ran_.end()) return known->second;
  ran_[module] = std::nullopt;  // in progress: a circular import finds the module half imported
  const std::string name = tables_.ModuleName(module);
  const std::string parent = ParentOf(name);
  std::optional<Failure> failure;
  if (!parent.empty()) failure = Run(tables_.Module(parent));
  const int file = tree_.File(module);
  if (!failure && file == SourceTree::kAbsent) {
    failure = FailureOf("missing-module", absl::StrCat("there is no module ", name), "");
  }
  const SymbolTable* table = failure ? nullptr : tables_.Table(file);
  if (table && table->error) {
    failure = FailureOf("syntax-error", absl::StrCat("Python cannot parse it: ", *table->error),
                        Where(module, table->error_line));
  }
  if (table && !failure) failure = RunBlock(table->body, module);
  ran_[module] = failure;
  return failure;
}

// Only unconditional statements: code inside if, try or with may expect the failure.
std::optional<Failure> Library::RunBlock(const Block& block, int module) {
  std::optional<Failure> failure;
  for (const Statement& statement : block) {
    if (statement.kind == SKind::kImport || statement.kind == SKind::kFrom) {
      failure = RunImport(statement, module);
    } else if (statement.kind == SKind::kIf && IsForTypeCheckers(statement.parts[0])) {
      failure = RunBlock(statement.blocks[1], module);
    } else if (statement.kind == SKind::kTry && statement.names.empty()) {
      failure = RunBlock(statement.blocks[0], module);
    }
    if (failure) return failure;
  }
  return std::nullopt;
}

std::optional<std::string> Library::Target(const Statement& from, int module) {
  std::string target = ImportTarget(from, tables_.ModuleName(module), tree_.IsPackage(module));
  if (target.empty() || target[0] == '.') return std::nullopt;
  return target;
}

std::optional<Failure> Library::RunImport(const Statement& statement, int module) {
  const auto located = [&](std::optional<Failure> failure) {
    if (failure && failure->where.empty()) failure->where = Where(module, statement.line);
    return failure;
  };
  if (statement.kind == SKind::kImport) {
    for (const ImportedName& name : statement.names) {
      if (!IsOurs(name.name)) continue;
      if (auto failure = located(Run(tables_.Module(name.name)))) return failure;
    }
    return std::nullopt;
  }
  const std::optional<std::string> target = Target(statement, module);
  if (!target || !IsOurs(*target)) return std::nullopt;
  const int from = tables_.Module(*target);
  if (auto failure = located(Run(from))) return failure;
  for (const ImportedName& name : statement.names) {
    if (name.name == "*") continue;
    const auto values = LookUp(from, name.name);
    if (!values) {
      return FailureOf("missing-name", absl::StrCat(*target, " has no ", name.name),
                       Where(module, statement.line));
    }
    // `from a import b` imports the submodule a.b unless a binds b.
    const int below = tables_.Module(absl::StrCat(*target, ".", name.name));
    if (NamesIn(from).bound.contains(name.name) || tree_.File(below) == SourceTree::kAbsent)
      continue;
    if (auto failure = located(Run(below))) return failure;
  }
  return std::nullopt;
}

LibraryAnswer Library::Member(int module, const std::string& name) {
  if (auto values = LookUp(module, name)) return {*std::move(values), std::nullopt};
  return {{},
          FailureOf("missing-name", absl::StrCat(tables_.ModuleName(module), " has no ", name),
                    Where(module, 0))};
}

std::optional<std::vector<LibraryValue>> Library::LookUp(int module, const std::string& name) {
  const std::vector<LibraryValue> unknown(1);
  const int file = tree_.File(module);
  if (file == SourceTree::kAbsent || file == SourceTree::kOpaque) return unknown;
  const SymbolTable* table = tables_.Table(file);
  if (file != SourceTree::kFolder && (!table || table->error)) return unknown;
  if (!looking_up_.emplace(module, name).second) return unknown;
  std::vector<LibraryValue> values;
  const auto bound = NamesIn(module).bound.find(name);
  if (bound != NamesIn(module).bound.end()) {
    for (const Binding& binding : bound->second) {
      const auto more = ValuesOf(binding, name, {.module = module});
      values.insert(values.end(), more.begin(), more.end());
    }
  }
  const std::string below = absl::StrCat(tables_.ModuleName(module), ".", name);
  if (tree_.File(tables_.Module(below)) != SourceTree::kAbsent)
    values.push_back(ModuleValue(below));
  if (values.empty()) {
    if (auto starred = LookUpStars(module, name)) values = *std::move(starred);
  }
  looking_up_.erase({module, name});
  if (!values.empty()) return values;
  const bool lazy = table && (table->dynamic || NamesIn(module).bound.contains("__getattr__"));
  if (lazy || IsDunder(name) || IsPatched(name, /*anything=*/false)) return unknown;
  return std::nullopt;
}

std::optional<std::vector<LibraryValue>> Library::LookUpStars(int module, const std::string& name) {
  for (const Statement* star : NamesIn(module).stars) {
    const std::optional<std::string> target = Target(*star, module);
    if (!target || !IsOurs(*target)) return std::vector<LibraryValue>(1);
    const int from = tables_.Module(*target);
    const SymbolTable* table = tables_.Table(tree_.File(from));
    if (!table || table->computed_exports) return std::vector<LibraryValue>(1);
    const bool offered = table->exports ? std::find(table->exports->begin(), table->exports->end(),
                                                    name) != table->exports->end()
                                        : !absl::StartsWith(name, "_");
    if (!offered) continue;
    if (auto values = LookUp(from, name)) return values;
  }
  return std::nullopt;
}

std::vector<LibraryValue> Library::ValuesOf(const Binding& binding, const std::string& name,
                                            const Scope& scope) {
  if (!binding.statement) return std::vector<LibraryValue>(1);
  const Statement& statement = *binding.statement;
  if (statement.kind == SKind::kDefine) {
    for (const Expression& decorator : statement.function->decorators) {
      if (DecoratorName(decorator, scope) == "typing.overload") return {};
    }
    return {FunctionValue(statement, scope)};
  }
  if (statement.kind == SKind::kClass) return {ClassValue(statement, scope)};
  if (binding.value) {
    const EKind kind = binding.value->kind;
    if (kind == EKind::kName && binding.value->text == name) return std::vector<LibraryValue>(1);
    if (kind != EKind::kName && kind != EKind::kAttribute) return std::vector<LibraryValue>(1);
    return Evaluate(*binding.value, scope);
  }
  const ImportedName& imported = statement.names[binding.name];
  if (statement.kind == SKind::kImport) {
    const std::string dotted =
        imported.as.empty() ? imported.name.substr(0, imported.name.find('.')) : imported.name;
    return {IsOurs(dotted) ? ModuleValue(dotted) : External(dotted)};
  }
  const std::optional<std::string> target = Target(statement, scope.module);
  if (!target) return std::vector<LibraryValue>(1);
  if (!IsOurs(*target)) return {External(absl::StrCat(*target, ".", imported.name))};
  auto values = LookUp(tables_.Module(*target), imported.name);
  return values ? *std::move(values) : std::vector<LibraryValue>(1);
}

std::vector<LibraryValue> Library::Evaluate(const Expression& expression, const Scope& scope) {
  if (expression.kind == EKind::kOf) return Evaluate(expression.parts[0], scope);
  if (expression.kind == EKind::kName) {
    if (!scope.around.empty()) {
      const Names& names = tables_.NamesIn(*scope.around.back());
      const auto bound = names.bound.find(expression.text);
      if (bound != names.bound.end()) {
        if (bound->second.size() != 1) return std::vector<LibraryValue>(1);
        return ValuesOf(bound->second[0], expression.text, scope);
      }
    }
    auto values = LookUp(scope.module, expression.text);
    if (values) return *std::move(values);
    return {External(absl::StrCat("builtins.", expression.text))};
  }
  if (expression.kind != EKind::kAttribute) return std::vector<LibraryValue>(1);
  std::vector<LibraryValue> values;
  for (const LibraryValue& value : Evaluate(expression.parts[0], scope)) {
    LibraryAnswer answer = Attribute(value, expression.text);
    if (answer.failure) answer.values.assign(1, {});
    values.insert(values.end(), answer.values.begin(), answer.values.end());
  }
  return values;
}

std::string Library::DecoratorName(const Expression& decorator, const Scope& scope) {
  if (decorator.kind == EKind::kCall) return DecoratorName(decorator.parts[0], scope);
  const std::vector<LibraryValue> values = Evaluate(decorator, scope);
  return values.size() == 1 && values[0].kind == Kind::kExternal ? values[0].name : "";
}

LibraryValue Library::FunctionValue(const Statement& statement, const Scope& scope) {
  LibraryValue value{.kind = Kind::kFunction,
                     .module = scope.module,
                     .name = scope.prefix + statement.function->name,
                     .function = statement.function.get(),
                     .around = scope.around};
  for (const Expression& decorator : statement.function->decorators) {
    const std::string name = DecoratorName(decorator, scope);
    if (name == "builtins.staticmethod") {
      value.is_static = true;
    } else if (name == "builtins.classmethod") {
      value.is_class_method = true;
    } else if (!KeepsSignature(name)) {
      return {};
    }
  }
  return value;
}

LibraryValue Library::ClassValue(const Statement& statement, const Scope& scope) {
  for (const Expression& decorator : statement.klass->decorators) {
    if (!KeepsClass(DecoratorName(decorator, scope))) return {};
  }
  return {.kind = Kind::kClass,
          .module = scope.module,
          .name = scope.prefix + statement.klass->name,
          .klass = statement.klass.get(),
          .around = scope.around};
}

bool Library::IsPatched(const std::string& name, bool anything) {
  if (!patches_collected_) CollectPatches();
  if (patched_.contains(name) || patched_.contains("*")) return true;
  return anything && assigned_.contains(name);
}

void Library::CollectPatches() {
  patches_collected_ = true;
  for (const int module : tree_.modules) {
    const SymbolTable* table = tables_.Table(tree_.File(module));
    if (!table) continue;
    for (const auto& [owner, name] : table->patches) {
      if (name != "*") assigned_.insert(name);
      const Expression* root = &owner;
      while (root->kind == EKind::kAttribute) root = &root->parts[0];
      const auto bound = NamesIn(module).bound.find(root->text);
      if (bound == NamesIn(module).bound.end()) continue;
      const Statement* by = bound->second[0].statement;
      if (!by || by->kind == SKind::kAssign || by->kind == SKind::kAnnotated) continue;
      // A computed name counts only if the owner is a module or class of the library; any other
      // name counts unless the owner belongs to another package.
      for (const LibraryValue& value : Evaluate(owner, {.module = module})) {
        const bool ours = value.kind == Kind::kModule || value.kind == Kind::kClass;
        if (ours || (name != "*" && value.kind != Kind::kExternal)) patched_.insert(name);
      }
    }
  }
}

}  // namespace bkm
