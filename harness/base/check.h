// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_CHECK_H_
#define HARNESS_BASE_CHECK_H_

#include <sstream>

// HARNESS_CHECK(condition) << "why": ends the process when the condition is false, which means a
// bug in the harness itself. Never use it to check user input.
#define HARNESS_CHECK(condition) \
  if (condition) {               \
  } else                         \
    ::bkm::CheckFailure(__FILE__, __LINE__, #condition).stream()

namespace bkm {

// Collects the message and ends the process at the end of the statement.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

}  // namespace bkm

#endif  // HARNESS_BASE_CHECK_H_
