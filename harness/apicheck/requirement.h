// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_REQUIREMENT_H_
#define HARNESS_APICHECK_REQUIREMENT_H_

#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "harness/apicheck/call_fit.h"

namespace bkm {

// When a failed requirement would hit. Written to JSON: never rename.
enum class Grade {
  kImport,     // importing the engine
  kConstruct,  // making and initialising the engine, in any configuration
  kPossible,   // only in code that may not run
};
absl::string_view Name(Grade grade);

// One use of the library by an engine. Asks build on each other: the module, then its class, then
// the call of that class.
struct Ask {
  enum class Kind {
    kModule,     // import of the module `name`
    kAnyModule,  // import of one module whose name starts with `name`
    kFrom,       // from base import name
    kMember,     // base.name
    kCall,       // base(...)
    kStore,      // base.name = ...
  };
  Kind kind = Kind::kModule;
  int base = -1;
  std::string name;
  CallShape call;
};

// Numbers asks; equal asks of any engine share a number.
class Asks {
 public:
  int Of(Ask ask);
  const Ask& At(int ask) const { return asks_[ask]; }
  int size() const { return static_cast<int>(asks_.size()); }
  // "torchtitan.components.optimizer.OptimizersContainer.Config(lr=, name=)"
  std::string ToString(int ask) const;

 private:
  std::deque<Ask> asks_;
  std::map<std::string, int> numbers_;
};

// An ask at one line of an engine.
struct Requirement {
  int ask = -1;
  Grade grade = Grade::kPossible;
  int module = -1;  // the engine's
  int line = 0;
  bool operator==(const Requirement&) const = default;
  auto operator<=>(const Requirement&) const = default;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_REQUIREMENT_H_
