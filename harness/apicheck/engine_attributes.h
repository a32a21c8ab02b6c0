// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_ENGINE_ATTRIBUTES_H_
#define HARNESS_APICHECK_ENGINE_ATTRIBUTES_H_

#include <string>

#include "harness/apicheck/engine_modules.h"
#include "harness/apicheck/library_use.h"
#include "harness/apicheck/walk_frame.h"

namespace bkm {

// Reads and writes attributes of the engine's values, and records those of the library as asks.
class EngineAttributes {
 public:
  EngineAttributes(EngineModules& modules, LibraryUse& use) : modules_(modules), use_(use) {}

  EngineValue Get(const EngineValue& owner, const std::string& name, int line,
                  const WalkFrame& frame);
  void Set(const EngineValue& owner, const std::string& name, const EngineValue& value, int line,
           const WalkFrame& frame);

 private:
  EngineModules& modules_;
  LibraryUse& use_;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_ENGINE_ATTRIBUTES_H_
