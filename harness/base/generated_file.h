// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_GENERATED_FILE_H_
#define HARNESS_BASE_GENERATED_FILE_H_

#include <string>

namespace bkm {

// Whether this test run writes what it would compare with: BKM_ACCEPT=1.
bool IsAccepting();

// Of a file of the source tree (or a part of one) that a test derives from a table: fails the test
// unless `text` is `expected`, with the command that writes it. Where IsAccepting(),
// `file` is written and the test is skipped. `target` is the test's own label.
void ExpectGenerated(const std::string& file, const std::string& text, const std::string& expected,
                     const std::string& target);

}  // namespace bkm

#endif  // HARNESS_BASE_GENERATED_FILE_H_
