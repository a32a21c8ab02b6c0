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

// An interpreter whose version differs from the embedded one. Each cell is a new process of that
// interpreter, with the same sandbox and limits. Nothing is preloaded, so each cell imports torch.
class AloneInterpreter {
 public:
  // Asks the interpreter for its packages. With `options.bytecode`, imports the preload list once,
  // so that Python compiles it.
  static absl::StatusOr<AloneInterpreter> Find(InterpreterOptions options);

  const InterpreterReport& facts() const { return facts_; }
  // For CellSetting::body. Returns the interpreter's exit status, or ends by the same signal.
  int Run(const CellRequest& request, const EventWriter& events) const;

 private:
  AloneInterpreter(InterpreterOptions options, InterpreterReport facts)
      : options_(std::move(options)), facts_(std::move(facts)) {}

  InterpreterOptions options_;
  InterpreterReport facts_;
};

}  // namespace bkm

#endif  // HARNESS_CELL_ALONE_ENTRY_H_
