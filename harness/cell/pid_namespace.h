// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_PID_NAMESPACE_H_
#define HARNESS_CELL_PID_NAMESPACE_H_

#include <sys/types.h>

#include <memory>

#include "absl/status/statusor.h"
#include "harness/base/descriptor.h"

namespace bkm {

// A process namespace with an init that does nothing but reap: when the init is killed the kernel
// kills everything in the namespace, wherever it hid (new sessions, double forks). The cell in it
// is our own child and is not process 1, so that it sees signals as usual and we get its exit
// status first hand.
class PidNamespace {
 public:
  // Fails where the system refuses one.
  static absl::StatusOr<PidNamespace> Create();
  PidNamespace(PidNamespace&&) = default;
  PidNamespace& operator=(PidNamespace&&) = delete;
  ~PidNamespace();

  // Between the two, fork() puts the child into this namespace.
  absl::Status Enter() const;
  static absl::Status Leave();

  // Kills everything in it. Reap our own children in it first, then the init.
  void Kill();
  // Becomes readable once everything in it is gone.
  int init_pidfd() const { return init_pidfd_.get(); }
  pid_t init_pid() const { return init_; }
  // Reaps the init without waiting; true when it is gone.
  bool TryReap();

 private:
  PidNamespace() = default;

  std::unique_ptr<char[]> stack_;  // the init runs on it, in our memory
  pid_t init_ = -1;
  Descriptor init_pidfd_;
};

}  // namespace bkm

#endif  // HARNESS_CELL_PID_NAMESPACE_H_
