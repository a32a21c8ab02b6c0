// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_PROCESS_TREE_H_
#define HARNESS_CELL_PROCESS_TREE_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/base/descriptor.h"

namespace bkm {

// One process of a cell. `pid` is its number in the /proc in which it was found.
struct ProcessUse {
  pid_t pid = 0;
  int64_t resident_kib = 0;
};

// Memory of processes, KiB; shared pages are divided among their users.
struct ProportionalUse {
  int64_t kib = 0;
  int64_t shared_memory_kib = 0;  // the part of it that belongs to files in memory
};

// What processes have open. Each file counts once.
struct OpenFiles {
  int64_t unlinked = 0;        // regular files that have no name any more
  int64_t unlinked_bytes = 0;  // that they take
  int64_t buffers = 0;         // sockets and pipes: the kernel keeps what was sent and not read
};

// Finds the processes of a cell: with a process namespace, all processes in the cell's own /proc;
// without one, the descendants of the cell in the machine's /proc.
class ProcessTree {
 public:
  // `init`: that of the cell's process namespace, or -1. `own_proc`: the cell mounts its own /proc
  // during its set-up.
  ProcessTree(pid_t cell, pid_t init, bool own_proc)
      : cell_(cell), init_(init), own_proc_(own_proc) {}

  // The living processes and their memory, without the namespace's init. Empty during the cell's
  // set-up.
  std::vector<ProcessUse> List();

  // Exact but slow: the kernel walks the page tables.
  ProportionalUse Proportional(const std::vector<ProcessUse>& processes) const;

  // User and system time of all processes so far, as of the last List(). Without what processes
  // used that nobody waited for and that lived between two calls of List().
  double CpuSeconds() const;

  // What living processes have open; of unlinked files, those of this file system.
  OpenFiles Open(dev_t device) const;
  // What the files of the cell's own file systems in memory take, whether or not a process maps
  // them. 0 without a namespace, where they are the machine's.
  int64_t FilesInMemoryKib();
  // Adds the names of the shared libraries that the processes have mapped now.
  void AddLibraries(const std::vector<ProcessUse>& processes, std::set<std::string>& names) const;

  // Descendants seen so far by List(), for a cell without a namespace to kill.
  const std::vector<pid_t>& seen() const { return seen_; }

 private:
  bool OpenProc();
  std::vector<pid_t> ListOwnProc() const;
  std::vector<pid_t> ListDescendants();
  void CountCpu();

  std::vector<Descriptor> in_memory_;  // roots of the cell's own file systems in memory
  pid_t cell_;
  pid_t init_;
  bool own_proc_;
  Descriptor proc_;  // the /proc to read
  std::vector<pid_t> seen_;
  std::vector<pid_t> listed_;  // by the last List()

  // Clock ticks of one process, by its own account.
  struct OwnCpu {
    int64_t started = 0;  // tells processes apart that have the same number
    int64_t ticks = 0;
  };
  std::map<pid_t, OwnCpu> cpu_;     // of the listed processes
  int64_t ended_ticks_ = 0;         // of processes that were listed and are not there any more
  int64_t most_with_children_ = 0;  // ticks of all processes and the children they waited for
};

// Adds the names of the shared libraries that this process has mapped.
void AddOwnLibraries(std::set<std::string>& names);

// The children of `parent` in the machine's /proc.
std::vector<pid_t> ChildrenOf(pid_t parent);

}  // namespace bkm

#endif  // HARNESS_CELL_PROCESS_TREE_H_
