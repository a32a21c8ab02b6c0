// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_NAMES_H_
#define HARNESS_APICHECK_NAMES_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "harness/apicheck/symbol_table.h"

namespace bkm {

// One place where a module or class body binds a name.
struct Binding {
  const Statement* statement = nullptr;  // null: the value is unknown
  int name = 0;                          // for an import: index into statement->names
  const Expression* value = nullptr;     // for an assignment to a plain name
};

// The names that a module or class body binds, at any depth of its statements. Leaves out code that
// only type checkers see.
struct Names {
  // With several bindings, the value is one of them.
  std::unordered_map<std::string, std::vector<Binding>> bound;
  std::vector<const Statement*> stars;      // from X import *
  std::vector<std::string> declared;        // annotated, without a value
  std::vector<const Statement*> annotated;  // in order, unconditional ones only
  bool has_conditional_annotations = false;
};

// `body` must outlive the result.
Names NamesOf(const Block& body);

// Whether `test` is `TYPE_CHECKING`.
bool IsForTypeCheckers(const Expression& test);

// Every plain name that assigning to `target` binds.
void CollectTargets(const Expression& target, std::vector<std::string>& names);

}  // namespace bkm

#endif  // HARNESS_APICHECK_NAMES_H_
