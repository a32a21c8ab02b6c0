// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/orphans.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include "harness/cell/process_tree.h"

namespace bkm {

void AdoptOrphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

void KillOrphans() {
  // Each round adopts the children of the processes that the previous round killed. The bound is
  // for a process that forks faster than it is killed.
  for (int round = 0; round < 100; ++round) {
    const std::vector<pid_t> children = ChildrenOf(::getpid());
    if (children.empty()) return;
    for (const pid_t child : children) ::kill(child, SIGKILL);
    for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  }
}

}  // namespace bkm
