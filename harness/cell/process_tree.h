// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_PROCESS_TREE_H_
#define HARNESS_CELL_PROCESS_TREE_H_

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "harness/base/descriptor.h"

namespace bkm {

// One process of a cell. `proc` numbers are those of the /proc it was found in.
struct ProcessUse {
  pid_t pid = 0;
  int64_t resident_kib = 0;
};

// Finds the processes of a cell: in its own process namespace through the cell's /proc, which
// lists nothing else; without one, as the descendants of the cell in the machine's /proc.
class ProcessTree {
 public:
  // `init`: of the cell's process namespace, or -1. `own_proc`: the cell mounts a /proc of its own
  // once it is set up.
  ProcessTree(pid_t cell, pid_t init, bool own_proc)
      : cell_(cell), init_(init), own_proc_(own_proc) {}

  // The living processes with what they hold; without the namespace's init. Empty while the cell
  // is being set up.
  std::vector<ProcessUse> List();

  // Memory of the processes of the last List() with shared pages divided among their users, KiB.
  // Exact and slow: it walks their page tables.
  int64_t ProportionalKib(const std::vector<ProcessUse>& processes) const;

  // Descendants seen so far by List(), where there is no namespace to kill.
  const std::vector<pid_t>& seen() const { return seen_; }

 private:
  bool OpenProc();
  std::vector<pid_t> ListOwnProc() const;
  std::vector<pid_t> ListDescendants();

  pid_t cell_;
  pid_t init_;
  bool own_proc_;
  Descriptor proc_;  // the /proc that is read
  std::vector<pid_t> seen_;
};

// The children of `parent` in the machine's /proc.
std::vector<pid_t> ChildrenOf(pid_t parent);

}  // namespace bkm

#endif  // HARNESS_CELL_PROCESS_TREE_H_
