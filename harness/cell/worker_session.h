// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_WORKER_SESSION_H_
#define HARNESS_CELL_WORKER_SESSION_H_

namespace bkm {

// The worker's whole life, in a process that a supervisor has started: takes its settings from the
// channel, starts Python, and serves. Returns the exit status.
int RunWorker();

}  // namespace bkm

#endif  // HARNESS_CELL_WORKER_SESSION_H_
