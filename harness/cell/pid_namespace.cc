// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/pid_namespace.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <string>

#include "absl/strings/str_cat.h"
#include "harness/cell/private_descriptor.h"
#include "harness/cell/system_error.h"

namespace bkm {
namespace {

constexpr size_t kStackBytes = 64 << 10;

// Shares the worker's memory and runs beside it, because a fork would copy the page tables of all
// preloaded modules. So it may only use system calls that cannot fail: errno is the worker's, too.
int Init(void* ready) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setsid();
  ::close_range(0, UINT_MAX, 0);
  // From here on the init dies with the worker, and holds none of its pipes open.
  static_cast<std::atomic<bool>*>(ready)->store(true);
  // All signals are blocked; the kernel reaps orphans.
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGCHLD, &ignore, nullptr);
  // Not pause(): it would change the thread's state, which is the worker's.
  while (true) ::syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
}

}  // namespace

absl::StatusOr<PidNamespace> PidNamespace::Create() {
  PidNamespace result;
  result.stack_ = std::make_unique<char[]>(kStackBytes);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  std::atomic<bool> ready = false;
  result.init_ =
      ::clone(Init, result.stack_.get() + kStackBytes, CLONE_VM | CLONE_NEWPID | SIGCHLD, &ready);
  const int error = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  if (result.init_ < 0) return SystemError("cannot create a process namespace");
  result.init_pidfd_ =
      ToPrivate(Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, result.init_, 0))));
  if (!result.init_pidfd_.valid()) return SystemError("cannot watch a process namespace");
  pollfd ended = {result.init_pidfd_.get(), POLLIN, 0};
  while (!ready) {
    if (::poll(&ended, 1, 0) == 1)
      return absl::UnavailableError("the first process of a process namespace was killed");
    ::sched_yield();
  }
  return result;
}

PidNamespace::~PidNamespace() {
  if (!stack_ || init_ < 0) return;
  ::kill(init_, SIGKILL);
  while (::waitpid(init_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

absl::Status PidNamespace::Enter() const {
  const Descriptor space(
      ::open(absl::StrCat("/proc/", init_, "/ns/pid").c_str(), O_RDONLY | O_CLOEXEC));
  if (!space.valid() || ::setns(space.get(), CLONE_NEWPID) != 0)
    return SystemError("cannot enter a process namespace");
  return absl::OkStatus();
}

absl::Status PidNamespace::Leave() {
  const Descriptor own(::open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC));
  if (!own.valid() || ::setns(own.get(), CLONE_NEWPID) != 0)
    return SystemError("cannot leave a process namespace");
  return absl::OkStatus();
}

void PidNamespace::Kill() {
  if (init_ >= 0) ::kill(init_, SIGKILL);
}

bool PidNamespace::TryReap() {
  if (init_ >= 0 && ::waitpid(init_, nullptr, WNOHANG) == init_) init_ = -1;
  return init_ < 0;
}

}  // namespace bkm
