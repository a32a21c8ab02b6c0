// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_STUB_H_
#define HARNESS_APICHECK_STUB_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "harness/apicheck/api_check.h"

namespace bkm {

// A file of the library with a stub for something that the engine asks for, so that a broken pair
// gets further. It is not a fix: a stub of a missing module or name raises when it is used, and a
// stub of a function ignores unknown keywords.
struct Stub {
  std::string path;  // below the package: "components/optimizer.py"
  std::string text;  // the whole file
};

// Reads a file of the package; nullopt if it does not exist.
using ReadSource =
    std::function<absl::StatusOr<std::optional<std::string>>(const std::string& path)>;

// Nullopt if no stub is possible: for an attribute of an object, a missing argument or a module
// with a computed name.
absl::StatusOr<std::optional<Stub>> MakeStub(const Violation& broken, const ReadSource& read);

// The file of the module in a dotted name, and the rest of the name:
// "torchtitan.components.optimizer.OptimizersContainer.Config" ->
// "components/optimizer.py", "OptimizersContainer.Config".
struct NamedSource {
  std::string path;
  std::string rest;
};
absl::StatusOr<std::optional<NamedSource>> FindNamedSource(const std::string& dotted,
                                                           const ReadSource& read);

}  // namespace bkm

#endif  // HARNESS_APICHECK_STUB_H_
