// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_PID_NAMESPACE_H_
#define HARNESS_CELL_PID_NAMESPACE_H_

#include <sys/types.h>

#include <memory>

#include "absl/status/statusor.h"
#include "harness/base/descriptor.h"

namespace bkm {

// A process namespace whose init only reaps. When the init is killed, the kernel kills everything
// in the namespace, also after new sessions or double forks. The cell in it is a child of the
// worker and not process 1, so it gets signals as usual and the worker gets its exit status.
class PidNamespace {
 public:
  // Fails if the system refuses one.
  static absl::StatusOr<PidNamespace> Create();
  PidNamespace(PidNamespace&&) = default;
  PidNamespace& operator=(PidNamespace&&) = delete;
  ~PidNamespace();

  // Between Enter and Leave, fork() puts the child into this namespace.
  absl::Status Enter() const;
  static absl::Status Leave();

  // Kills everything in it. Afterwards reap the worker's children in it first, then the init.
  void Kill();
  // Readable once all processes in it have ended.
  int init_pidfd() const { return init_pidfd_.get(); }
  pid_t init_pid() const { return init_; }
  // Reaps the init without waiting; true once it is reaped.
  bool TryReap();

 private:
  PidNamespace() = default;

  std::unique_ptr<char[]> stack_;  // of the init, which shares this process's memory
  pid_t init_ = -1;
  Descriptor init_pidfd_;
};

}  // namespace bkm

#endif  // HARNESS_CELL_PID_NAMESPACE_H_
