// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_DISTURBANCE_H_
#define HARNESS_BASE_DISTURBANCE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace bkm {

// Failures of the machine that `bkm torture` injects into the bkm it starts. $BKM_DISTURB holds
// words, separated by commas:
//   journal=FOLDER  record every step of writing (harness/torture/journal.h)
//   slow=MS         each step of writing takes so many milliseconds longer
//   full=FROM-TO    the writes with these numbers, counted from 1, find a full disk
//   eio=TEXT        writing fails with EIO in paths that contain TEXT
//   clock=SEED      the clock jumps by up to 20 years at each reading
//   acts=FILE       each time one of these acts, or a write finds a disk that is really full, a
//   byte
//                   is appended to FILE
class Disturbance {
 public:
  virtual ~Disturbance() = default;
  // What $BKM_DISTURB asks for, until the object is destroyed. Null when it is not set.
  static absl::StatusOr<std::unique_ptr<Disturbance>> FromEnvironment();
};

}  // namespace bkm

#endif  // HARNESS_BASE_DISTURBANCE_H_
