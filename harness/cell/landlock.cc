// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "harness/base/descriptor.h"
#include "harness/base/status_macros.h"
#include "harness/cell/system_error.h"

namespace bkm {
namespace {

// Newer than Debian's header.
constexpr uint64_t kTruncate = 1ULL << 14;                         // version 3
constexpr uint64_t kIoctlOnDevices = 1ULL << 15;                   // version 5
constexpr uint64_t kBindTcp = 1ULL << 0, kConnectTcp = 1ULL << 1;  // version 4
constexpr uint64_t kScopes = 3;  // version 6: abstract sockets, signals

struct Ruleset {
  uint64_t files = 0;
  uint64_t network = 0;
  uint64_t scopes = 0;
};

constexpr int kRuleOfPort = 2;  // LANDLOCK_RULE_NET_PORT
struct PortRule {
  uint64_t allowed = 0;
  uint64_t port = 0;
};

constexpr uint64_t kRead =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kVersion1 = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
constexpr uint64_t kMakeDevices = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK;
constexpr uint64_t kOfFiles = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                              LANDLOCK_ACCESS_FS_READ_FILE | kTruncate;

absl::Status Allow(int ruleset, const std::filesystem::path& path, uint64_t access) {
  const Descriptor place(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat info = {};
  if (!place.valid() || ::fstat(place.get(), &info) != 0) return absl::OkStatus();
  if (!S_ISDIR(info.st_mode)) access &= kOfFiles;
  landlock_path_beneath_attr rule = {};
  rule.allowed_access = access;
  rule.parent_fd = place.get();
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
    return SystemError(absl::StrCat("cannot allow ", path.string()));
  return absl::OkStatus();
}

}  // namespace

int LandlockVersion() {
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version < 0 ? 0 : static_cast<int>(version);
}

std::string MissingInLandlock(int version) {
  if (version <= 0) {
    return absl::StrCat("landlock: this kernel does not offer Landlock; it needs Linux 6.12 with ",
                        "landlock in the kernel parameter lsm");
  }
  const auto old = [&](const char* lack) {
    return absl::StrCat("landlock: this kernel offers version ", version, " of Landlock, ", lack,
                        "; it needs version 6 (Linux 6.12)");
  };
  if (version < 3)
    return old(
        "which keeps a cell neither from emptying files outside of its folders nor from "
        "abstract sockets");
  if (version < 6) return old("which does not keep a cell from abstract sockets");
  return "";
}

absl::Status EnterLandlock(const LandlockRules& rules) {
  // An older kernel refuses what it does not know.
  const Ruleset set = {.files = kVersion1 | LANDLOCK_ACCESS_FS_REFER | kTruncate | kIoctlOnDevices,
                       .network = kBindTcp | kConnectTcp,
                       .scopes = kScopes};
  const Descriptor ruleset(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &set, sizeof set, 0)));
  if (!ruleset.valid()) return SystemError("cannot create a set of Landlock rules");
  for (const auto& path : rules.reads)
    RETURN_IF_ERROR(Allow(ruleset.get(), path, kRead & set.files));
  for (const auto& path : rules.writes)
    RETURN_IF_ERROR(Allow(ruleset.get(), path, set.files & ~kMakeDevices & ~kIoctlOnDevices));
  // gloo listens, also for a single rank. Rules know ports but no hosts: nobody may connect.
  const PortRule chosen_by_the_kernel = {.allowed = kBindTcp, .port = 0};
  if (::syscall(SYS_landlock_add_rule, ruleset.get(), kRuleOfPort, &chosen_by_the_kernel, 0) != 0)
    return SystemError("cannot allow to listen");
  if (::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0)
    return SystemError("cannot apply the Landlock rules");
  return absl::OkStatus();
}

}  // namespace bkm
