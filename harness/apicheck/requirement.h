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

// When a failure would hit. Written to JSON: never rename.
enum class Grade {
  kImport,     // importing the engine
  kConstruct,  // making and initialising it, whatever is configured
  kPossible,   // only in code that may not be reached
};
absl::string_view Name(Grade grade);

// Something that an engine does with the library. An ask builds on what another one gives: the
// module, then its class, then the call of that.
struct Ask {
  enum class Kind {
    kModule,     // import of the module `name`
    kAnyModule,  // import of a module whose name starts with `name`: one of them
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

// Asks by number; equal asks have one number, whichever engine asks them.
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

// One place where an engine asks something.
struct Requirement {
  int ask = -1;
  Grade grade = Grade::kPossible;
  int module = -1;  // of the engine
  int line = 0;
  bool operator==(const Requirement&) const = default;
  auto operator<=>(const Requirement&) const = default;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_REQUIREMENT_H_
