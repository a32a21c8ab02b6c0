// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_PYTHON_ENTRY_H_
#define HARNESS_CELL_PYTHON_ENTRY_H_

#include "harness/cell/cell_request.h"
#include "harness/cell/event_writer.h"

namespace bkm {

// Calls bkm_cell.cell.run(request, emit) in a process that was forked from a warm interpreter, and
// gives the exit status for _exit. An exception that run() lets out is reported as the cell's.
int RunPythonEntry(const CellRequest& request, const EventWriter& events);

}  // namespace bkm

#endif  // HARNESS_CELL_PYTHON_ENTRY_H_
