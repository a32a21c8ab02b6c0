// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/engine_modules.h"

#include "harness/apicheck/dotted_name.h"

namespace bkm {

bool EngineModules::IsThere(int module) {
  const int file = parts_.tree.File(module);
  reads_[module] = file;
  return file != SourceTree::kAbsent;
}

EngineScope* EngineModules::Scope(int module) const {
  const auto found = scopes_.find(module);
  return found == scopes_.end() ? nullptr : found->second;
}

void EngineModules::Import(int module, bool certain) {
  const std::string parent = ParentOf(Name(module));
  if (!parent.empty()) Import(Number(parent), certain);
  if (!IsThere(module) || importing_.contains(module)) return;
  EngineScope* scope = Scope(module);
  if (scope && (!certain || certain_.contains(module))) return;
  if (!scope) scope = scopes_[module] = parts_.arena.NewScope(module);
  if (certain) certain_.insert(module);
  const SymbolTable* table = Table(module);
  if (!table || table->error) return;
  for (const auto& [owner, attribute] : table->patches) {
    if (attribute != "*") parts_.use.AddStored(attribute);
  }
  importing_.insert(module);
  WalkFrame frame{.scope = scope, .module = module, .certain = certain};
  parts_.walker.WalkBlock(table->body, frame);
  importing_.erase(module);
}

}  // namespace bkm
