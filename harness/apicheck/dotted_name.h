// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_DOTTED_NAME_H_
#define HARNESS_APICHECK_DOTTED_NAME_H_

#include <string>

#include "absl/strings/string_view.h"
#include "harness/apicheck/symbol_table.h"

// Dotted names of Python modules: "torchtitan.components.loss".
namespace bkm {

// The name without its last part; empty for a top-level name.
std::string ParentOf(const std::string& dotted);

// Whether `dotted` is `package` or lies in it.
bool IsWithin(absl::string_view dotted, absl::string_view package);

// The module that `from ... import` in `module` imports from. A relative import that leaves the top
// package gives a name that is empty or starts with a dot.
std::string ImportTarget(const Statement& from, const std::string& module, bool is_package);

}  // namespace bkm

#endif  // HARNESS_APICHECK_DOTTED_NAME_H_
