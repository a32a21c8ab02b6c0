// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Debian's libstdc++.a calls arc4random for std::random_device. glibc has it since 2.36 only, so a
// program that takes it from there does not start on an older one.
#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

#pragma GCC visibility push(hidden)
extern "C" unsigned arc4random_of_package() asm("arc4random");
extern "C" unsigned arc4random_of_package() {
  unsigned value = 0;
  while (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
    if (errno != EINTR) std::abort();
  }
  return value;
}
#pragma GCC visibility pop
