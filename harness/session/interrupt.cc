// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/session/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace bkm {
namespace {

// Global, because a signal handler has no argument for it.
volatile sig_atomic_t interrupt_fd = -1;

void Hear(int signal) {
  const uint64_t one = 1;
  if (::write(interrupt_fd, &one, sizeof one) < 0) ::_exit(128 + signal);
  ::signal(signal, SIG_DFL);
}

}  // namespace

InterruptSignals::InterruptSignals() : event_(::eventfd(0, EFD_CLOEXEC)) {
  interrupt_fd = fd();
  ::signal(SIGINT, Hear);
  ::signal(SIGTERM, Hear);
  ::signal(SIGPIPE, SIG_IGN);
}

InterruptSignals::~InterruptSignals() {
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
}

bool InterruptSignals::heard() const {
  pollfd readable = {fd(), POLLIN, 0};
  return ::poll(&readable, 1, 0) == 1;
}

}  // namespace bkm
