// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_LIBRARY_H_
#define HARNESS_APICHECK_LIBRARY_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/apicheck/call_fit.h"
#include "harness/apicheck/source_tree.h"
#include "harness/apicheck/symbol_tables.h"

namespace bkm {

// The value of a name of the library, as far as the source tells.
struct LibraryValue {
  enum class Kind {
    kUnknown,
    kModule,
    kExternal,  // from another package; `name` is its dotted name
    kFunction,
    kMethod,  // a function whose first parameter is filled
    kClass,
    kInstance,  // of exactly this class, because a known call made it
  };
  Kind kind = Kind::kUnknown;
  int module = -1;   // the module itself, or the one that defines the value
  std::string name;  // in its module: "OptimizersContainer.Config"
  const FunctionDefinition* function = nullptr;
  const ClassDefinition* klass = nullptr;
  std::vector<const ClassDefinition*> around;  // enclosing classes, outermost first
  bool is_static = false;
  bool is_class_method = false;
};

// The answer to an ask: its possible values, or why it certainly fails.
struct LibraryAnswer {
  std::vector<LibraryValue> values;
  std::optional<Failure> failure;
};

// Answers asks for one version of a library, by its source alone. An ask that depends on unread
// code has an unknown value, never a failure. Belongs to one thread.
class Library {
 public:
  // Both must outlive this object.
  Library(SymbolTables& tables, const SourceTree& tree) : tables_(tables), tree_(tree) {}

  // Imports `module`. Fails if it is missing, or if an unconditional import in it or in a module
  // that it imports so fails.
  LibraryAnswer Import(int module);
  // `from module import name`, or module.name once the module is imported.
  LibraryAnswer Member(int module, const std::string& name);
  LibraryAnswer Attribute(const LibraryValue& value, const std::string& name);
  LibraryAnswer Call(const LibraryValue& value, const CallShape& call);
  // value.name = ...
  LibraryAnswer Store(const LibraryValue& value, const std::string& name);

  // Modules whose name is `prefix` and one more part: "torchtitan.models." -> all models.
  std::vector<int> ModulesAfter(const std::string& prefix) const;
  // The modules that define `name`: where a missing name may have moved. For messages.
  std::vector<std::string> Definers(const std::string& name);

 private:
  using Kind = LibraryValue::Kind;
  struct Scope {
    int module = -1;
    std::vector<const ClassDefinition*> around;
    std::string prefix;  // of names defined here: "OptimizersContainer."
  };

  std::string Where(int module, int line) const;
  const Names& NamesIn(int module) { return tables_.NamesIn(tree_.File(module)); }

  // library_names.cc
  std::optional<Failure> Run(int module);
  std::optional<Failure> RunBlock(const Block& block, int module);
  std::optional<Failure> RunImport(const Statement& statement, int module);
  std::optional<std::string> Target(const Statement& from, int module);
  bool IsOurs(const std::string& dotted) const;
  LibraryValue ModuleValue(const std::string& dotted);
  std::optional<std::vector<LibraryValue>> LookUp(int module, const std::string& name);
  std::optional<std::vector<LibraryValue>> LookUpStars(int module, const std::string& name);
  std::vector<LibraryValue> ValuesOf(const Binding& binding, const std::string& name,
                                     const Scope& scope);
  std::vector<LibraryValue> Evaluate(const Expression& expression, const Scope& scope);
  // The decorator's dotted name (for a call, the callee's); empty if it is not another package's.
  std::string DecoratorName(const Expression& decorator, const Scope& scope);
  LibraryValue FunctionValue(const Statement& statement, const Scope& scope);
  LibraryValue ClassValue(const Statement& statement, const Scope& scope);
  // Whether some file of the library assigns an attribute of this name to a thing from another
  // file, or, with `anything`, to any value.
  bool IsPatched(const std::string& name, bool anything);
  void CollectPatches();

  // library_classes.cc
  struct Constructor {
    bool known = false;
    std::vector<Parameter> parameters;
    int bound = 0;
    std::string where;
  };
  // The class's method resolution order; nullopt if it is unknown.
  std::optional<std::vector<LibraryValue>> Ancestry(const LibraryValue& klass, int depth = 0);
  // Nullopt: no ancestor has the member.
  std::optional<std::vector<LibraryValue>> ClassMember(const std::vector<LibraryValue>& ancestry,
                                                       const std::string& name);
  Constructor ConstructorOf(const LibraryValue& klass);
  Constructor NamedTupleConstructor(const LibraryValue& klass);
  // By the bindings of __init__ in the class's own body.
  Constructor DefinedConstructor(const LibraryValue& klass, const std::vector<Binding>& inits);
  // Whether no metaclass and no __new__ stands before __init__.
  bool IsMadeByInit(const LibraryValue& ancestor);
  std::optional<std::vector<Parameter>> DataclassParameters(
      const std::vector<LibraryValue>& ancestry);
  bool AddFields(const LibraryValue& klass, std::vector<Parameter>& fields);
  // The flags of the class's @dataclass; nullptr without one.
  const Flags* DataclassFlags(const LibraryValue& klass);
  bool IsSlotted(const LibraryValue& klass);
  static Scope ScopeIn(const LibraryValue& klass);
  LibraryAnswer ClassAttribute(const LibraryValue& klass, const std::string& name);
  LibraryAnswer InstanceAttribute(const LibraryValue& value, const std::string& name);
  // Whether an instance, or the class, may have the attribute although its body does not bind it.
  bool MayHave(const LibraryValue& ancestor, const std::string& name, bool instance);

  SymbolTables& tables_;
  const SourceTree& tree_;
  std::map<int, std::optional<Failure>> ran_;  // by module: its import is decided or in progress
  std::set<std::pair<int, std::string>> looking_up_;
  bool patches_collected_ = false;
  std::set<std::string> patched_;   // attributes of things from another file; "*": a computed name
  std::set<std::string> assigned_;  // attributes of any value
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_LIBRARY_H_
