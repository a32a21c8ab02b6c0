// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_JUDGE_EXCEPTION_TEXT_H_
#define HARNESS_JUDGE_EXCEPTION_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "harness/model/observation.h"

namespace bkm {

// The first line that is not blank, trimmed to 240 bytes, with absolute paths cut to their last two
// parts.
std::string FirstLine(absl::string_view message);

// Identifies an error across cells: the message in lower case, without paths, numbers and
// addresses.
std::string NormalizedMessage(absl::string_view message);

// Lower case, letters and digits only: "FlashAttention2" and "flash_attention_2" become equal.
std::string Squeezed(absl::string_view text);

// The deepest frame that is not Python's own (import machinery, dataclasses, ...), or nullptr.
const ObservedFrame* DeepestFrame(const ObservedException& exception);

// "ImportError: cannot import name 'X' from 'y' (verl/utils/model.py:29)".
std::string DescribeException(const ObservedException& exception);

// Without absolute paths. A folder's name may hold an option or a backend that the message does not
// speak of: the cell's own folder does.
std::string WithoutPaths(absl::string_view message);

// The exception that explains the ending, or nullptr if none was observed. It is the one that ended
// the cell; if an import error was raised from another import error, as lazy importers do, it is
// the innermost of these.
const ObservedException* DecidingException(const Observation& observation);

}  // namespace bkm

#endif  // HARNESS_JUDGE_EXCEPTION_TEXT_H_
