// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_BACKEND_CHECK_H_
#define HARNESS_JUDGE_BACKEND_CHECK_H_

#include "absl/strings/string_view.h"
#include "harness/judge/check_result.h"
#include "harness/model/observation.h"

namespace bkm {

// Whether the backend that was built and called is the one that was asked for. There are four
// witnesses, each used where it was observed: the class of every layer's inner attention; for HF,
// the callable that each layer called; the ops of the witness forward pass; and, per layer in the
// first training step, the ops that its attention dispatched and the autograd nodes that it left.
// - A witness that shows another backend in any layer fails the check. The reason is
//   override-ignored if another backend was built, and other-backend-ran if the right one was built
//   and another one ran, forward or backward.
// - At least one of the first two witnesses must show the asked backend. Ops alone prove too
//   little: eager attention has none of its own, and a model may use sdpa beside the asked
//   attention.
CheckResult CheckBackend(const Observation& observation, absl::string_view attention);

}  // namespace bkm

#endif  // HARNESS_JUDGE_BACKEND_CHECK_H_
