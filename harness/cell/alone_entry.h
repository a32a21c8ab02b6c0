// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_ALONE_ENTRY_H_
#define HARNESS_CELL_ALONE_ENTRY_H_

#include <utility>

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
  // own. With `options.bytecode`, what would be preloaded is imported once, to be compiled there.
  static absl::StatusOr<AloneInterpreter> Find(InterpreterOptions options);

  const InterpreterReport& facts() const { return facts_; }
  // CellSetting::body: gives the interpreter's exit status, or ends by its signal.
  int Run(const CellRequest& request, const EventWriter& events) const;

 private:
  AloneInterpreter(InterpreterOptions options, InterpreterReport facts)
      : options_(std::move(options)), facts_(std::move(facts)) {}

  InterpreterOptions options_;
  InterpreterReport facts_;
};

}  // namespace bkm

#endif  // HARNESS_CELL_ALONE_ENTRY_H_
