// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/machine_facts.h"

#include <sys/statvfs.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

#include "harness/base/json_facts.h"

namespace bkm {

ObservedMachine MachineFacts(const std::filesystem::path& cell_dir, int memory_mib) {
  constexpr uintmax_t kEnoughDisk = uintmax_t{64} << 20;
  constexpr fsfilcnt_t kEnoughFiles = 1000;
  struct statvfs disk = {};
  const bool known = ::statvfs(cell_dir.c_str(), &disk) == 0;
  const bool disk_full =
      known && (static_cast<uintmax_t>(disk.f_bavail) * disk.f_frsize < kEnoughDisk ||
                (disk.f_files > 0 && disk.f_favail < kEnoughFiles));
  int64_t available_kib = std::numeric_limits<int64_t>::max();
  std::ifstream file("/proc/meminfo");
  for (std::string name; file >> name;) {
    if (name == "MemAvailable:") file >> available_kib;
  }
  return {.disk_full = disk_full, .memory_short = available_kib / 1024 < memory_mib};
}

ObservedMachine MachineFactsOf(const Json& json) {
  return {.disk_full = IsTrue(json, "disk_full"), .memory_short = IsTrue(json, "memory_short")};
}

}  // namespace bkm
