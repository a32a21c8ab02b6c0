// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_KEEPER_H_
#define HARNESS_BASE_KEEPER_H_

#include <signal.h>
#include <sys/types.h>

namespace bkm {

// What a keeper starts.
struct KeptProgram {
  char* const* argv;  // argv[0] is looked up in PATH
  char* const* env;
  const char* directory;          // null: this process's
  int in, out, err;               // the program's stdin, stdout and stderr; -1: inherited
  bool own_group;                 // in a process group of its own, whose id is the keeper's
  bool ends_descendants = false;  // ends what the program leaves behind when it ends
};

// The signal that makes a keeper end its program and all of the program's descendants.
inline constexpr int kEndAll = SIGUSR1;

// Starts a program below a keeper: a small process that waits for the program and ends as the
// program ended. If the calling process dies, even by SIGKILL, the keeper ends the program and all
// of its descendants; if the keeper dies, the program gets SIGKILL, and what that one had started
// becomes a child of the calling process, as for a program that was killed. Returns the keeper's
// pid, which stands for the program in kill(2) and waitpid(2): the keeper passes signals on. With
// `own_group`, its negative is the group of the program, to which the keeper does not belong.
// Returns -errno when the program could not be started.
pid_t StartKept(const KeptProgram& program);

// Ends the children of this process that are no keepers and do not bear its own name: what a keeper
// that was killed has left. They may hold its pipes open for ever. RunCommand calls it when its
// program was killed, so only keepers may run then as children of the process that calls it.
void EndOrphans();

// While it lives, keepers that start hold the open file `file`, too: a lock on it lasts until the
// programs of a killed process have ended as well. At most 16 at once; others are not held.
class HeldByKeepers {
 public:
  explicit HeldByKeepers(int file);
  ~HeldByKeepers();
  HeldByKeepers(HeldByKeepers&& other) noexcept;
  HeldByKeepers& operator=(HeldByKeepers&& other) = delete;

 private:
  int slot_ = -1;
};

}  // namespace bkm

#endif  // HARNESS_BASE_KEEPER_H_
