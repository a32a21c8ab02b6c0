// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_INTERPRETER_H_
#define HARNESS_CELL_INTERPRETER_H_

#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/json.h"

namespace bkm {

struct InterpreterOptions {
  std::filesystem::path python;       // the environment's interpreter
  std::filesystem::path python_code;  // the folder that holds the package bkm_cell
  std::vector<std::string> preload;   // modules, in order
  // Folder of compiled Python, read instead of the folders of the sources. Empty: compiled files
  // are read beside the sources. None is written: what a package wrote would outlive it.
  std::filesystem::path bytecode;
};

// What a warm interpreter reports about itself.
struct InterpreterReport {
  std::string version;                      // "3.11.2"
  Json versions = Json::object();           // distribution -> version, as installed
  Json preload_errors = Json::object();     // module -> "ImportError: ..."
  std::vector<std::filesystem::path> path;  // sys.path: a cell must be able to read it
  std::vector<std::string> uncompiled;      // sources without a compiled file in `bytecode`
  double preload_s = 0;
};

}  // namespace bkm

#endif  // HARNESS_CELL_INTERPRETER_H_
