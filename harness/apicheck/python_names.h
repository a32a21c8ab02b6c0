// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_PYTHON_NAMES_H_
#define HARNESS_APICHECK_PYTHON_NAMES_H_

#include "absl/strings/string_view.h"

// What names of Python's standard library and of torch mean for a check of signatures.
namespace bkm {

// __like_this__.
bool IsDunder(absl::string_view name);

// Whether a function behind this decorator takes the arguments that it takes without it.
bool KeepsSignature(absl::string_view decorator);

// Whether a class behind this decorator is the class itself.
bool KeepsClass(absl::string_view decorator);

// Whether a class that inherits from it is made by its own __init__ alone: no metaclass and no
// __new__ stands before that.
bool IsPlainBase(absl::string_view base);

// Whether a class that inherits from it gets no attribute from it.
bool AddsNoAttributes(absl::string_view base);

// Whether a block under this context manager runs once, and its exceptions go on.
bool LetsExceptionsPass(absl::string_view context_manager);

}  // namespace bkm

#endif  // HARNESS_APICHECK_PYTHON_NAMES_H_
