// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/capabilities.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/cell/system_error.h"

namespace bkm {
namespace {

using Data = __user_cap_data_struct[2];

absl::Status Set(const Data& data) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  if (::syscall(SYS_capset, &header, data) != 0) return SystemError("cannot drop capabilities");
  return absl::OkStatus();
}

// Capability numbers run from 0; the kernel refuses the first one that it does not know.
absl::Status DropFromBoundingSet(std::initializer_list<int> kept) {
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability) >= 0; ++capability) {
    if (std::find(kept.begin(), kept.end(), capability) != kept.end()) continue;
    // Without CAP_SETPCAP the call fails even for one that is dropped already.
    if (::prctl(PR_CAPBSET_READ, capability) == 0) continue;
    if (::prctl(PR_CAPBSET_DROP, capability) != 0)
      return SystemError(absl::StrCat("cannot drop capability ", capability));
  }
  return absl::OkStatus();
}

absl::Status BecomeUser(uid_t user, gid_t group) {
  if (::getuid() == user && ::geteuid() == user && ::getgid() == group && ::getegid() == group)
    return absl::OkStatus();
  // Refused in the user namespace of someone who is not root: such a user keeps the groups.
  ::setgroups(0, nullptr);
  if (::setresgid(group, group, group) != 0) return SystemError("cannot change the group");
  if (::setresuid(user, user, user) != 0) return SystemError("cannot change the user");
  return absl::OkStatus();
}

}  // namespace

absl::Status BecomeUserWithCapabilities(uid_t user, gid_t group) {
  if (::prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) != 0)
    return SystemError("cannot keep capabilities");
  return BecomeUser(user, group);
}

absl::Status KeepOnlyCapabilities(std::initializer_list<int> kept) {
  RETURN_IF_ERROR(DropFromBoundingSet(kept));
  Data data = {};
  for (const int capability : kept) {
    __user_cap_data_struct& word = data[CAP_TO_INDEX(capability)];
    word.effective |= CAP_TO_MASK(capability);
    word.permitted |= CAP_TO_MASK(capability);
    word.inheritable |= CAP_TO_MASK(capability);
  }
  RETURN_IF_ERROR(Set(data));
  for (const int capability : kept) {
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) != 0)
      return SystemError("cannot pass capabilities on");
  }
  return absl::OkStatus();
}

absl::Status ClearAmbientCapabilities() {
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
    return SystemError("cannot clear ambient capabilities");
  return absl::OkStatus();
}

absl::Status DropAllCapabilities(uid_t user, gid_t group) {
  constexpr int kLocked = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                          SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                          SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  // The process may have none already, and then no right to call these.
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  Data now = {};
  if (::syscall(SYS_capget, &header, now) != 0) return SystemError("cannot read capabilities");
  const bool may_drop = now[CAP_TO_INDEX(CAP_SETPCAP)].effective & CAP_TO_MASK(CAP_SETPCAP);
  if (may_drop) {
    RETURN_IF_ERROR(DropFromBoundingSet({}));
    if (::prctl(PR_SET_SECUREBITS, kLocked) != 0) return SystemError("cannot lock securebits");
  }
  RETURN_IF_ERROR(BecomeUser(user, group));
  RETURN_IF_ERROR(ClearAmbientCapabilities());
  RETURN_IF_ERROR(Set({}));
  // A change of the user makes the process's own files in /proc unreadable.
  if (::prctl(PR_SET_DUMPABLE, 1) != 0) return SystemError("cannot stay dumpable");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return SystemError("cannot refuse new privileges");
  return absl::OkStatus();
}

}  // namespace bkm
