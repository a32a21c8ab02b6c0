// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_INTERPRETER_H_
#define HARNESS_CELL_INTERPRETER_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"

namespace bkm {

struct InterpreterOptions {
  std::filesystem::path python;       // the environment's interpreter
  std::filesystem::path python_code;  // the folder that holds the package bkm_cell
  std::vector<std::string> preload;   // modules, in order
  // Where compiled Python is read from instead of beside the sources, and where that of preloaded
  // modules is added. Empty: beside the sources, and none is written.
  std::filesystem::path bytecode;
};

// What a warm interpreter says of itself.
struct InterpreterReport {
  std::string version;                      // "3.11.2"
  Json versions = Json::object();           // distribution -> version, as installed
  Json preload_errors = Json::object();     // module -> "ImportError: ..."
  std::vector<std::filesystem::path> path;  // sys.path: what a cell must be able to read
  double preload_s = 0;
};

// Starts the one interpreter of this process on the environment's packages and preloads them. It is
// never torn down: a process that has called this ends with _exit. Replaces the process's
// environment variables by the cells' own. A module that cannot be preloaded is reported, not an
// error: the cells that need it will say so.
absl::StatusOr<InterpreterReport> StartInterpreter(const InterpreterOptions& options);

}  // namespace bkm

#endif  // HARNESS_CELL_INTERPRETER_H_
