// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_EXCEPTION_TEXT_H_
#define HARNESS_JUDGE_EXCEPTION_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "harness/model/observation.h"

namespace bkm {

// The first line that says something, trimmed, with absolute paths cut to their last two parts and
// at most 240 bytes.
std::string FirstLine(absl::string_view message);

// What identifies an error across cells: lower case, without paths, numbers and addresses.
std::string NormalizedMessage(absl::string_view message);

// Lower case, letters and digits only: "FlashAttention2" and "flash_attention_2" become the same.
std::string Squeezed(absl::string_view text);

// The deepest frame that is not Python's own (import machinery, dataclasses, ...); nullptr without.
const ObservedFrame* DeepestFrame(const ObservedException& exception);

// "ImportError: cannot import name 'X' from 'y' (verl/utils/model.py:29)".
std::string DescribeException(const ObservedException& exception);

// The exception that says why: the one that ended the cell, or, where an import error was raised
// from another import error (lazy importers do), the innermost of these. nullptr when none was
// seen.
const ObservedException* DecidingException(const Observation& observation);

}  // namespace bkm

#endif  // HARNESS_JUDGE_EXCEPTION_TEXT_H_
