// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_ENGINE_MODULES_H_
#define HARNESS_APICHECK_ENGINE_MODULES_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "harness/apicheck/dotted_name.h"
#include "harness/apicheck/engine_value.h"
#include "harness/apicheck/library_use.h"
#include "harness/apicheck/source_tree.h"
#include "harness/apicheck/symbol_tables.h"
#include "harness/apicheck/walk_frame.h"

namespace bkm {

// The engine's own modules, by number: their files, and the scopes of those that a walk imported.
class EngineModules {
 public:
  // What is shared with the rest of the walk; all of it must outlive this object.
  struct Parts {
    SymbolTables& tables;
    const SourceTree& tree;
    EngineArena& arena;
    LibraryUse& use;
    BlockWalker& walker;
  };
  explicit EngineModules(Parts parts) : parts_(parts) {}

  bool Own(absl::string_view dotted) const { return IsWithin(dotted, parts_.tree.package); }
  int Number(const std::string& dotted) { return parts_.tables.Module(dotted); }
  const std::string& Name(int module) const { return parts_.tables.ModuleName(module); }
  bool IsPackage(int module) const { return parts_.tree.IsPackage(module); }

  // Whether a file or folder has the module's name. Adds the module to reads().
  bool IsThere(int module);
  // Follows the import of a module and of its parent packages: once, and again when it becomes
  // certain.
  void Import(int module, bool certain);
  // Null if the module was not imported.
  EngineScope* Scope(int module) const;
  // Imported modules with their scopes, in the order of their numbers.
  std::vector<std::pair<int, EngineScope*>> Imported() const {
    return {scopes_.begin(), scopes_.end()};
  }

  // Null if the source is unknown.
  const SymbolTable* Table(int module) { return parts_.tables.Table(parts_.tree.File(module)); }
  const Block* BodyOf(const FunctionDefinition& function, int module) {
    return parts_.tables.Body(parts_.tree.File(module), function.body);
  }

  // The modules that the walk looked up, with the file at each.
  const std::map<int, int>& reads() const { return reads_; }

 private:
  Parts parts_;
  std::map<int, EngineScope*> scopes_;
  std::set<int> certain_;    // certainly imported
  std::set<int> importing_;  // being imported now
  std::map<int, int> reads_;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_ENGINE_MODULES_H_
