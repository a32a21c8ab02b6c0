// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_BACKEND_CHECK_H_
#define HARNESS_JUDGE_BACKEND_CHECK_H_

#include "absl/strings/string_view.h"
#include "harness/judge/check_result.h"
#include "harness/model/observation.h"

namespace bkm {

// Whether the backend that was built and called is the one that was asked for. Four witnesses are
// weighed, each where it was seen: the class of every layer's inner attention; for HF, the callable
// that each layer really called; the ops of the evidence forward; and of each layer, in the first
// training step, the ops that its attention dispatched and the autograd nodes that it left.
// - A witness that shows another backend fails the check, in one layer or all: override-ignored for
//   what was built, other-backend-ran when the right one was built and another one ran, forward or
//   backward.
// - At least one of the first two must show the asked backend: ops alone tell too little (eager
//   attention has none of its own, and a model may use sdpa beside what is asked).
CheckResult CheckBackend(const Observation& observation, absl::string_view attention);

}  // namespace bkm

#endif  // HARNESS_JUDGE_BACKEND_CHECK_H_
