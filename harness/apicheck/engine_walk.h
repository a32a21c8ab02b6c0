// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_ENGINE_WALK_H_
#define HARNESS_APICHECK_ENGINE_WALK_H_

#include <map>
#include <string>
#include <vector>

#include "harness/apicheck/engine_attributes.h"
#include "harness/apicheck/engine_calls.h"
#include "harness/apicheck/engine_expressions.h"
#include "harness/apicheck/engine_imports.h"
#include "harness/apicheck/engine_modules.h"
#include "harness/apicheck/engine_statements.h"
#include "harness/apicheck/engine_value.h"
#include "harness/apicheck/library_use.h"
#include "harness/apicheck/requirement.h"
#include "harness/apicheck/source_tree.h"
#include "harness/apicheck/symbol_tables.h"
#include "harness/apicheck/walk_frame.h"

namespace bkm {

// Where a walk through an engine starts: data of the engine kind.
struct EngineEntry {
  std::vector<std::string> modules;  // imported in this order; the last one has the class
  std::string klass;                 // made and then initialised; empty: nothing is made
  std::vector<std::string> methods;  // called on the object, in this order
};

// Follows an engine from its entry through its own imports and calls, as Python would run it, and
// collects what it asks of the library. A value that it cannot follow may be anything. Code counts
// as certainly reached only where that is proven: only such code can make a pair red.
class EngineWalk : private BlockWalker {
 public:
  // All but `library` must outlive this object.
  EngineWalk(SymbolTables& tables, const SourceTree& tree, const std::string& library, Asks& asks);
  EngineWalk(const EngineWalk&) = delete;
  EngineWalk& operator=(const EngineWalk&) = delete;

  void Run(const EngineEntry& entry);

  // Sorted, with the gravest grade of each ask at each place.
  std::vector<Requirement> Requirements() const { return use_.Requirements(); }
  // The modules that the walk looked up, with the file at each. A tree with the same files at these
  // has the same result.
  const std::map<int, int>& reads() const { return modules_.reads(); }
  // Whether the entry's class was found and followed.
  bool followed() const { return followed_; }
  // The first module of the entry that the engine lacks; empty: none.
  const std::string& missing_entry() const { return missing_entry_; }

 private:
  int WalkBlock(const Block& block, WalkFrame& frame) override {
    return statements_.WalkBlock(block, frame);
  }
  void MakeEntryObject(const EngineEntry& entry);
  // Walks all functions once more, as only possible code, to find asks that no call reached.
  void WalkEverything();
  void WalkFunctionsIn(const Block& block, WalkFrame& frame, EngineClass* klass);
  void WalkFunction(const FunctionDefinition& function, const WalkFrame& frame, EngineClass* klass);

  EngineArena arena_;
  LibraryUse use_;
  EngineModules modules_;
  EngineImports imports_;
  EngineAttributes attributes_;
  EngineCalls calls_;
  EngineExpressions expressions_;
  EngineStatements statements_;
  EngineObject* entry_object_ = nullptr;
  bool followed_ = false;
  std::string missing_entry_;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_ENGINE_WALK_H_
