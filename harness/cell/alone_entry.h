// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_ALONE_ENTRY_H_
#define HARNESS_CELL_ALONE_ENTRY_H_

#include <filesystem>

#include "absl/status/statusor.h"
#include "harness/cell/cell_request.h"
#include "harness/cell/event_writer.h"
#include "harness/cell/interpreter.h"

namespace bkm {

// An interpreter of another version than the embedded one: each cell is a process of that
// interpreter, in the same sandbox and under the same limits. Nothing is preloaded, so that a cell
// costs what importing torch costs.
class AloneInterpreter {
 public:
  // Asks the interpreter what it holds; replaces this process's environment variables by the cells'
  // own. `bytecode`: where compiled Python is read from instead of beside the sources; or empty.
  static absl::StatusOr<AloneInterpreter> Find(std::filesystem::path python,
                                               std::filesystem::path python_code,
                                               std::filesystem::path bytecode);

  const InterpreterFacts& facts() const { return facts_; }
  // CellSetting::body: gives the interpreter's exit status, or ends by its signal.
  int Run(const CellRequest& request, const EventWriter& events) const;

 private:
  std::filesystem::path python_;
  std::filesystem::path python_code_;
  std::filesystem::path bytecode_;
  InterpreterFacts facts_;
};

}  // namespace bkm

#endif  // HARNESS_CELL_ALONE_ENTRY_H_
