// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_ENGINE_IMPORTS_H_
#define HARNESS_APICHECK_ENGINE_IMPORTS_H_

#include <string>

#include "harness/apicheck/engine_modules.h"
#include "harness/apicheck/library_use.h"
#include "harness/apicheck/walk_frame.h"

namespace bkm {

// Follows imports of the engine's own modules into them, and records imports of the library as
// asks.
class EngineImports {
 public:
  EngineImports(EngineModules& modules, LibraryUse& use) : modules_(modules), use_(use) {}

  // import a.b, c as d
  void Import(const Statement& statement, WalkFrame& frame);
  // from a import b, c as d
  void ImportFrom(const Statement& statement, WalkFrame& frame);
  // importlib.import_module(text)
  EngineValue ImportByText(const EngineValue& text, int line, const WalkFrame& frame);

 private:
  void ImportFromEngine(const std::string& target, const Statement& statement, WalkFrame& frame);

  EngineModules& modules_;
  LibraryUse& use_;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_ENGINE_IMPORTS_H_
