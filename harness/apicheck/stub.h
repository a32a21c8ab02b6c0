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

// A change of the library's sources that gives an engine what it asks for, so that a broken pair
// can be followed further. It says nothing of how the pair would work: what is put in place of a
// missing name refuses to be used, and arguments that are no longer taken are ignored.
struct Stub {
  std::string path;  // below the package: "components/optimizer.py"
  std::string text;  // the whole file
};

// The text of a file of the package; nullopt where there is none.
using ReadSource =
    std::function<absl::StatusOr<std::optional<std::string>>(const std::string& path)>;

// Nullopt where no stub is possible: an attribute of an object, a missing argument, a module whose
// name is computed.
absl::StatusOr<std::optional<Stub>> MakeStub(const Violation& broken, const ReadSource& read);

// The file of the package that holds the module of a dotted name, and what is left of the name
// behind it: "torchtitan.components.optimizer.OptimizersContainer.Config" ->
// "components/optimizer.py", "OptimizersContainer.Config".
struct NamedSource {
  std::string path;
  std::string rest;
};
absl::StatusOr<std::optional<NamedSource>> FindNamedSource(const std::string& dotted,
                                                           const ReadSource& read);

}  // namespace bkm

#endif  // HARNESS_APICHECK_STUB_H_
