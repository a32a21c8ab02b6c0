// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_PYTHON_ENTRY_H_
#define HARNESS_CELL_PYTHON_ENTRY_H_

#include <sys/types.h>

#include "harness/cell/cell_request.h"
#include "harness/cell/event_writer.h"

namespace bkm {

// Calls bkm_cell.cell.run(request, emit) in a process forked from a warm interpreter. Returns the
// status for _exit. An exception that leaves run() is reported as the cell's exception.
int RunPythonEntry(const CellRequest& request, const EventWriter& events);

// fork(), which the interpreter hears of.
pid_t ForkPython();

}  // namespace bkm

#endif  // HARNESS_CELL_PYTHON_ENTRY_H_
