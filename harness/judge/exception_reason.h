// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_EXCEPTION_REASON_H_
#define HARNESS_JUDGE_EXCEPTION_REASON_H_

#include <string>

#include "harness/model/observation.h"
#include "harness/model/probe.h"

namespace bkm {

// The reason code of an exception, from its type and Python's and torch's own wording.
std::string ReasonOf(const ObservedException& exception);

// Whether the exception is a clear refusal of what the probe asks for: a `raise` or an `assert` in
// the engine's or the library's own code whose message names the asked option, or the options that
// are supported instead. No refusal:
// - an assertion about types that pass between the two parties (isinstance);
// - a message by which the asked option is supported ("only varlen and flex ... are supported",
//   asked for flex): then something else was asked on the way.
bool IsRefusal(const ObservedException& exception, const Probe& probe);

// Whether the exception says that other hardware is needed ("only supported on Hopper or
// Blackwell", "no NVIDIA driver"): on a cell that was given a CPU this says nothing about the pair.
bool NeedsOtherHardware(const ObservedException& exception, const Probe& probe);

// Whether the message lists what is supported, and the asked option is on the list.
bool ContradictsTheProbe(const ObservedException& exception, const Probe& probe);

}  // namespace bkm

#endif  // HARNESS_JUDGE_EXCEPTION_REASON_H_
