// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_ORPHANS_H_
#define HARNESS_CELL_ORPHANS_H_

namespace bkm {

// For a machine without process namespaces: from now on this process, not the machine's init,
// adopts its descendants that lose their parent.
void AdoptOrphans();

// Kills and reaps all children of this process, and the children that it adopts from them. Call it
// only while no child is needed.
void KillOrphans();

}  // namespace bkm

#endif  // HARNESS_CELL_ORPHANS_H_
