// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_RESUME_CHECK_H_
#define HARNESS_JUDGE_RESUME_CHECK_H_

#include <cstdint>
#include <optional>
#include <span>

#include "harness/judge/check_result.h"
#include "harness/judge/step_files.h"
#include "harness/model/observation.h"

namespace bkm {

// A run of steps, with what each wrote. Both spans have one element per step.
struct StepsSeen {
  std::span<const ObservedStep> reported;
  std::span<const StepTensors> tensors;
};

// Whether the steps of a fresh engine that loaded the checkpoint of the first step equal the
// uninterrupted run's steps from the second on, bit by bit: a trainer's choice of documents, loss,
// total gradient norm, learning rate, log-probs, sampled gradients and parameters, and norms. A
// failure is resume-off at the stage `resume` and names the first quantity that differs in the
// first step. A checkpoint without a file is resume-off, too. `files`: how many saving it wrote.
// Unseen if the first step changed no parameter (a warm-up that begins with rate 0).
// `repeats`: whether this device computes the same bits each time. If not (kernels of a GPU add in
// any order), only what is loaded and not computed is compared: the parameters before the second
// step, and the learning rates.
CheckResult CheckResume(std::optional<int64_t> files, const StepsSeen& uninterrupted,
                        const StepsSeen& resumed, bool repeats = true);

}  // namespace bkm

#endif  // HARNESS_JUDGE_RESUME_CHECK_H_
