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

// What a name of the library stands for, as far as its source tells.
struct LibraryValue {
  enum class Kind {
    kUnknown,
    kModule,
    kExternal,  // of another package: `name` is its dotted name
    kFunction,
    kMethod,  // its first parameter is filled
    kClass,
    kInstance,  // of exactly this class, made by a call that we saw
  };
  Kind kind = Kind::kUnknown;
  int module = -1;   // itself, or where it is defined
  std::string name;  // in its module: "OptimizersContainer.Config"
  const FunctionDefinition* function = nullptr;
  const ClassDefinition* klass = nullptr;
  std::vector<const ClassDefinition*> around;  // the classes it is defined in, outermost first
  bool is_static = false;
  bool is_class_method = false;
};

// One question's answer: values, of which it is one, or why it fails. A failure is certain.
struct LibraryAnswer {
  std::vector<LibraryValue> values;
  std::optional<Failure> failure;
};

// Answers questions on one version of a library, by its source alone. Whatever depends on what
// cannot be read is answered by an unknown value, never by a failure. Belongs to one thread.
class Library {
 public:
  // Both must outlive this object.
  Library(SymbolTables& tables, const SourceTree& tree) : tables_(tables), tree_(tree) {}

  // Importing `module`: it is there, and what it and the modules that it needs import without fail
  // is there too.
  LibraryAnswer Import(int module);
  // `from module import name`, or module.name once it is imported.
  LibraryAnswer Member(int module, const std::string& name);
  LibraryAnswer Attribute(const LibraryValue& value, const std::string& name);
  LibraryAnswer Call(const LibraryValue& value, const CallShape& call);
  // value.name = ...
  LibraryAnswer Store(const LibraryValue& value, const std::string& name);

  // Modules below a name that starts with `prefix`, one level: "torchtitan.models." -> all models.
  std::vector<int> ModulesAfter(const std::string& prefix) const;
  // The modules that define `name` themselves: where to look for what has moved. For messages.
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
  // The dotted name of what a decorator is, of a call the callee's; empty when it cannot be told.
  std::string DecoratorName(const Expression& decorator, const Scope& scope);
  LibraryValue FunctionValue(const Statement& statement, const Scope& scope);
  LibraryValue ClassValue(const Statement& statement, const Scope& scope);
  // Whether some file of the library gives what it got from another file, or anything at all, an
  // attribute of this name.
  bool IsPatched(const std::string& name, bool anything);
  void CollectPatches();

  // library_classes.cc
  struct Constructor {
    bool known = false;
    std::vector<Parameter> parameters;
    int bound = 0;
    std::string where;
  };
  // The class and what it inherits from, in Python's order; nullopt where that cannot be told.
  std::optional<std::vector<LibraryValue>> Ancestry(const LibraryValue& klass, int depth = 0);
  // nullopt: none of them has it.
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
  // The flags of its @dataclass; nullptr when it has none.
  const Flags* DataclassFlags(const LibraryValue& klass);
  bool IsSlotted(const LibraryValue& klass);
  static Scope ScopeIn(const LibraryValue& klass);
  LibraryAnswer ClassAttribute(const LibraryValue& klass, const std::string& name);
  LibraryAnswer InstanceAttribute(const LibraryValue& value, const std::string& name);
  // Whether an instance, or a class, may have attributes that its source does not show.
  bool MayHave(const LibraryValue& ancestor, const std::string& name, bool instance);

  SymbolTables& tables_;
  const SourceTree& tree_;
  std::map<int, std::optional<Failure>> ran_;  // modules whose import is decided, or under way
  std::set<std::pair<int, std::string>> looking_up_;
  bool patches_collected_ = false;
  std::set<std::string> patched_;   // on what came from another file; "*": a computed name
  std::set<std::string> assigned_;  // on anything
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_LIBRARY_H_
