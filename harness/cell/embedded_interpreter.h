// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_EMBEDDED_INTERPRETER_H_
#define HARNESS_CELL_EMBEDDED_INTERPRETER_H_

#include "absl/status/statusor.h"
#include "harness/cell/interpreter.h"

namespace bkm {

// Starts this process's only interpreter with the environment's packages and preloads them. The
// process must have the environment variables of cells already. The interpreter is never torn
// down: the caller must end with _exit.
absl::StatusOr<InterpreterReport> StartEmbeddedInterpreter(const InterpreterOptions& options);

}  // namespace bkm

#endif  // HARNESS_CELL_EMBEDDED_INTERPRETER_H_
