// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_BACKEND_CHECK_H_
#define HARNESS_JUDGE_BACKEND_CHECK_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "harness/judge/check_result.h"
#include "harness/model/observation.h"

namespace bkm {

struct CaseFile;  // case_file.h

struct AskedAttention {
  std::string name;    // as in the probe: "flex"
  int64_t layers = 0;  // of the model
  int64_t steps = 0;   // training steps that must be proven; 0 for a cell that did not finish
  // Of a control, which may have asked the library for nothing (Observation::not_asked). An engine
  // is always asked.
  bool of_control = false;
};

// Whether the backend that was built and called is the one that was asked for. The witnesses are:
// 1. the class of every layer's inner attention; for HF, the callable that each layer called;
// 2. the ops of the witness forward pass;
// 3. per layer and training step, the ops that its attention dispatched and the autograd nodes that
//    it left;
// 4. per training step, the nodes that the backward pass of its loss goes through.
//
// A witness that shows another backend anywhere, also beside the asked one, fails the check. The
// reason is override-ignored if another backend was built, and other-backend-ran if the right one
// was built and another one ran. So does a loss whose backward pass goes through fewer calls of the
// asked attention than there are layers and micro-batches.
//
// The first witness must show the asked backend, and in each step that must be proven the third
// must show it in every layer and the fourth must have looked; else the check is unseen. Backends
// whose backward pass is made of plain ops cannot be counted by the fourth. Another backend in a
// library that was never asked is not offered (reason not-offered), and unseen, too.
CheckResult CheckBackend(const Observation& observation, const AskedAttention& asked);

// What this cell is asked for. Of a cell that stopped, no step is asked: only what it did wrong
// before counts.
absl::StatusOr<AskedAttention> AskedOf(const CaseFile& file);

}  // namespace bkm

#endif  // HARNESS_JUDGE_BACKEND_CHECK_H_
