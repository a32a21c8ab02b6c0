// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_REPORT_COMMAND_TEXT_H_
#define HARNESS_REPORT_COMMAND_TEXT_H_

#include <string>

#include "harness/model/cell.h"

namespace bkm {

// `text` as one word of a shell in one line, quoted only where it must be.
std::string ShellWord(const std::string& text);

// "bkm run --engine ... --attention flex": asks the same of the same pairing on any machine. Of a
// cell with a planted fault, the part of the self-test that plants it.
std::string CommandOf(const Cell& cell);

}  // namespace bkm

#endif  // HARNESS_REPORT_COMMAND_TEXT_H_
