// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_ENGINE_CALLS_H_
#define HARNESS_APICHECK_ENGINE_CALLS_H_

#include <set>
#include <vector>

#include "harness/apicheck/engine_attributes.h"
#include "harness/apicheck/engine_imports.h"
#include "harness/apicheck/engine_modules.h"
#include "harness/apicheck/library_use.h"
#include "harness/apicheck/walk_frame.h"

namespace bkm {

// The arguments of a call and its place.
struct CallSite {
  const Expression* call = nullptr;  // null: the walk makes the call, all arguments by position
  std::vector<EngineValue> arguments;
  int line = 0;
};

// Follows calls of the engine's own functions and constructors into their bodies, and records calls
// of the library as asks.
class EngineCalls {
 public:
  // What is shared with the rest of the walk; all of it must outlive this object.
  struct Parts {
    EngineArena& arena;
    LibraryUse& use;
    EngineModules& modules;
    EngineImports& imports;
    EngineAttributes& attributes;
    BlockWalker& walker;
  };
  explicit EngineCalls(Parts parts) : parts_(parts) {}

  EngineValue Call(const EngineValue& callee, const CallSite& site, const WalkFrame& frame);
  EngineValue CallFunction(const EngineValue& callee, const CallSite& site, const WalkFrame& frame);
  EngineValue MakeObject(EngineClass* klass, const CallSite& site, const WalkFrame& frame);

  // After this call, no function body is entered.
  void StopEntering() { entering_ = false; }
  bool entering() const { return entering_; }

 private:
  const Block* BodyToEnter(const EngineValue& callee, const WalkFrame& frame);
  // Binds the function's parameters in `scope`.
  void BindParameters(const EngineValue& callee, const CallSite& site, EngineScope& scope);
  EngineValue CallExternal(const EngineValue& callee, const CallSite& site, const WalkFrame& frame);
  EngineValue CallSuper(const CallSite& site, const WalkFrame& frame);

  Parts parts_;
  bool entering_ = true;
  int calls_ = 0;
  std::set<const FunctionDefinition*> running_;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_ENGINE_CALLS_H_
