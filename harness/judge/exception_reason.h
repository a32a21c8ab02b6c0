// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_EXCEPTION_REASON_H_
#define HARNESS_JUDGE_EXCEPTION_REASON_H_

#include <string>

#include "harness/model/observation.h"
#include "harness/model/probe.h"

namespace bkm {

// The reason code of an exception, from its type and the wording of Python and torch.
std::string ReasonOf(const ObservedException& exception);

// Whether the exception is a clear refusal: a `raise` or an `assert` in the engine's or the
// library's own code whose message names the asked option or lists the supported options. These are
// not refusals:
// - an assertion about types passed between the two parties (isinstance);
// - a message that lists the asked option as supported ("only varlen and flex ... are supported",
//   asked for flex): something else was requested on the way.
bool IsRefusal(const ObservedException& exception, const Probe& probe);

// Whether the exception says that other hardware is needed ("only supported on Hopper or
// Blackwell", "no NVIDIA driver", "cannot be run on CPU"). These are the subject's words: a red
// verdict stays red unless the control, without the engine, ends in the same way.
bool NeedsOtherHardware(const ObservedException& exception, const Probe& probe);

// Whether the message lists the supported options and the asked option is among them.
bool ContradictsTheProbe(const ObservedException& exception, const Probe& probe);

}  // namespace bkm

#endif  // HARNESS_JUDGE_EXCEPTION_REASON_H_
