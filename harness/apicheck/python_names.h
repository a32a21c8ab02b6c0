// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_PYTHON_NAMES_H_
#define HARNESS_APICHECK_PYTHON_NAMES_H_

#include "absl/strings/string_view.h"

// Properties of names of Python's standard library and of torch that decide about signatures.
namespace bkm {

// __like_this__.
bool IsDunder(absl::string_view name);

// Whether the decorated function takes the same arguments as the function itself.
bool KeepsSignature(absl::string_view decorator);

// Whether the decorated class is the class itself.
bool KeepsClass(absl::string_view decorator);

// Whether a subclass is made by __init__ alone, because the base has no metaclass and no __new__
// that changes construction.
bool IsPlainBase(absl::string_view base);

// Whether a subclass inherits no attribute from it.
bool AddsNoAttributes(absl::string_view base);

// Whether a block under this context manager runs exactly once and its exceptions propagate.
bool LetsExceptionsPass(absl::string_view context_manager);

}  // namespace bkm

#endif  // HARNESS_APICHECK_PYTHON_NAMES_H_
