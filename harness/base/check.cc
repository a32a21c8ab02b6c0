// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace bkm {

CheckFailure::CheckFailure(const char* file, int line, const char* condition) {
  stream_ << "bkm: this is a bug: " << file << ":" << line << ": " << condition << ": ";
}

CheckFailure::~CheckFailure() {
  std::fprintf(stderr, "%s\n", stream_.str().c_str());
  std::abort();
}

}  // namespace bkm
