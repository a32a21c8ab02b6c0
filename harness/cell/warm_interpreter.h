// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_WARM_INTERPRETER_H_
#define HARNESS_CELL_WARM_INTERPRETER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/cell/interpreter.h"

namespace bkm {

// What an environment's interpreter says about itself.
struct PythonEnvironment {
  Json version;  // [3, 11]
  std::string prefix;
  std::string exec_prefix;
  std::string home;               // of the standard library
  std::vector<std::string> site;  // folders of packages
};

// Starts the interpreter once: only that knows where its packages are.
absl::StatusOr<PythonEnvironment> AskEnvironment(const std::filesystem::path& python);

// Gives this process's interpreter, which has started without site.py, the environment's packages,
// and preloads. Needs the GIL. A module that cannot be preloaded is reported and is not an error:
// the cells that need it will fail.
absl::StatusOr<InterpreterReport> WarmInterpreter(const InterpreterOptions& options,
                                                  const PythonEnvironment& environment);

}  // namespace bkm

#endif  // HARNESS_CELL_WARM_INTERPRETER_H_
