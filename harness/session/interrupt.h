// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SESSION_INTERRUPT_H_
#define HARNESS_SESSION_INTERRUPT_H_

#include "harness/base/descriptor.h"

namespace bkm {

// While it lives, the first SIGINT or SIGTERM makes fd() readable instead of ending the process. A
// second one ends the process at once.
class InterruptSignals {
 public:
  InterruptSignals();
  ~InterruptSignals();
  InterruptSignals(const InterruptSignals&) = delete;
  int fd() const { return event_.get(); }
  bool heard() const;

 private:
  Descriptor event_;
};

}  // namespace bkm

#endif  // HARNESS_SESSION_INTERRUPT_H_
