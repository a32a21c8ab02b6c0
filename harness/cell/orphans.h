// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_ORPHANS_H_
#define HARNESS_CELL_ORPHANS_H_

namespace bkm {

// For a machine without process namespaces: from now on a process that has lost its parent comes to
// this one instead of to the machine's init.
void AdoptOrphans();

// Kills and reaps every child of this process, and what comes to it from them. Call it while none
// of them is wanted.
void KillOrphans();

}  // namespace bkm

#endif  // HARNESS_CELL_ORPHANS_H_
