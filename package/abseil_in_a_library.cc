// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Debian compiles its archives of abseil for programs. This file defines what a shared library,
// libbkm_worker.so, cannot take from them: two objects with thread-local variables, and the
// variable stderr, which one object expects at a fixed distance.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <thread>

#include "absl/base/config.h"

#pragma GCC visibility push(hidden)
extern "C" std::FILE* stderr_of_package asm("stderr");
std::FILE* stderr_of_package = nullptr;
#pragma GCC visibility pop

namespace {

[[gnu::constructor(101)]] void TakeStderr() {
  if (void* real = ::dlsym(RTLD_DEFAULT, "stderr"))
    stderr_of_package = *static_cast<std::FILE**>(real);
}

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

// No cord is sampled.
namespace cord_internal {
thread_local int64_t cordz_next_sample = INT64_MAX;
int get_cordz_mean_interval() { return 0; }
void set_cordz_mean_interval(int) {}
bool cordz_should_profile_slow() {
  cordz_next_sample = INT64_MAX;
  return false;
}
void cordz_set_next_sample_for_testing(int64_t) {}
}  // namespace cord_internal

namespace base_internal {
double NominalCPUFrequency() { return 1.0; }
int NumCPUs() { return static_cast<int>(std::thread::hardware_concurrency()); }
pid_t GetTID() { return ::gettid(); }
pid_t GetCachedTID() { return ::gettid(); }
}  // namespace base_internal

ABSL_NAMESPACE_END
}  // namespace absl
