// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/resource_limits.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "harness/base/descriptor.h"
#include "harness/base/status_macros.h"
#include "harness/cell/system_error.h"

namespace bkm {
namespace {

// Of one process. torch needs some hundred; together with the limit on processes, a cell stays far
// below what the machine can open.
constexpr rlim_t kOpenFiles = 4096;
constexpr rlim_t kMib = rlim_t{1} << 20;

absl::Status Limit(__rlimit_resource resource, rlim_t value, absl::string_view name) {
  rlimit limit = {};
  ::getrlimit(resource, &limit);
  if (limit.rlim_max != RLIM_INFINITY && value > limit.rlim_max) value = limit.rlim_max;
  limit = {value, value};
  if (::setrlimit(resource, &limit) != 0) return SystemError(absl::StrCat("cannot limit ", name));
  return absl::OkStatus();
}

// Private writable memory mapped by this process, MiB.
rlim_t MappedDataMib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    long kib = 0;
    if (std::sscanf(line.c_str(), "VmData: %ld kB", &kib) == 1)
      return static_cast<rlim_t>(kib) / 1024;
  }
  return 0;
}

// If the machine runs out of memory, the kernel should kill a cell, not the runner.
void OfferToOutOfMemoryKiller() {
  const Descriptor file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (file.valid()) WriteAll(file.get(), "1000");
}

}  // namespace

absl::Status ApplyResourceLimits(const CellRequest& request) {
  const RequestedLimits& limits = request.limits;
  OfferToOutOfMemoryKiller();
  // One byte: no core file, and no pipe to a crash reporter either, which 0 would allow.
  RETURN_IF_ERROR(Limit(RLIMIT_CORE, 1, "core files"));
  RETURN_IF_ERROR(Limit(RLIMIT_NOFILE, kOpenFiles, "open files"));
  if (limits.memory_mib > 0 && request.on_cpu) {
    const rlim_t mib = MappedDataMib() + 2 * static_cast<rlim_t>(limits.memory_mib) + 1024;
    RETURN_IF_ERROR(Limit(RLIMIT_DATA, mib * kMib, "memory"));
  }
  if (limits.output_mib > 0) {
    const rlim_t mib = 4 * static_cast<rlim_t>(limits.output_mib) + 256;
    RETURN_IF_ERROR(Limit(RLIMIT_FSIZE, mib * kMib, "file sizes"));
  }
  return absl::OkStatus();
}

}  // namespace bkm
