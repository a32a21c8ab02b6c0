// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_MASK_CHECK_H_
#define HARNESS_JUDGE_MASK_CHECK_H_

#include <cstdint>
#include <span>

#include "harness/judge/check_result.h"
#include "harness/model/observation.h"

namespace bkm {

// The reach test: one token was changed, at flat position p of a packed batch. Under a causal mask
// inside each document, the log-prob at t is a function of the tokens of t's document up to t and
// of the label t + 1. So exactly these may move:
//   p - 1, when p is not the first of its document: its label changed;
//   p to the end of p's document.
// Anything else that moves has seen what it must not: a leak, however small. And these must move:
//   p - 1, and p, whose own input changed;
//   at least kMinReach of p to the second last position of the document (the last one has no label
//   of its own). Not all: far from p the change may be rounded away in low precision. Measured on
//   right cells: all move. A token that sees only itself, or only a short window, moves a few.
inline constexpr double kMinReach = 0.75;

// `document_lengths` are those of the batch in which the token was changed. The type of mask that
// reached each layer explains a leak (mask-missing), but cannot excuse one.
CheckResult CheckMask(const Observation& observation, std::span<const int64_t> document_lengths);

}  // namespace bkm

#endif  // HARNESS_JUDGE_MASK_CHECK_H_
