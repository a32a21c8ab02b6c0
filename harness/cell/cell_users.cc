// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/cell_users.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

// A range that neither distributions nor systemd assign.
constexpr uid_t kFirst = 2000000000;
constexpr int kSlots = 64;
constexpr uid_t kRanges = 32768;
// For a machine whose user namespace is small, as in many containers.
constexpr uid_t kSmall = 65533;

std::string ReadSmall(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool BothContain(uid_t first, uid_t count) {
  return MapContains(ReadSmall("/proc/self/uid_map"), first, count) &&
         MapContains(ReadSmall("/proc/self/gid_map"), first, count);
}

// Whether uid 0 here is the root of the machine: it owns the kernel's own files.
bool IsRootOfTheMachine() {
  struct stat info = {};
  return ::geteuid() == 0 && ::stat("/proc/sys/kernel", &info) == 0 && info.st_uid == 0;
}

}  // namespace

bool MapContains(absl::string_view map, uid_t first, uid_t count) {
  std::istringstream lines{std::string(map)};
  uint64_t inside = 0;
  uint64_t outside = 0;
  uint64_t size = 0;
  while (lines >> inside >> outside >> size) {
    if (first >= inside && uint64_t{first} + count <= inside + size) return true;
  }
  return false;
}

std::string CellUsers::UserMap() const {
  if (!other) return absl::StrCat(kFirstInside, " ", worker_outside, " 1\n");
  return absl::StrCat(kFirstInside, " ", worker_outside, " 1\n", kFirstInside + 1, " ",
                      first_cell_outside, " ", count, "\n");
}

std::string CellUsers::GroupMap() const {
  return other ? UserMap() : absl::StrCat(kFirstInside, " ", group_outside, " 1\n");
}

absl::StatusOr<CellUsers> ChooseCellUsers() {
  CellUsers users;
  if (::geteuid() != 0) {
    users.worker_outside = users.first_cell_outside = ::geteuid();
    users.group_outside = ::getegid();
    return users;
  }
  users.other = true;
  if (BothContain(kFirst, kRanges * kSlots + 1)) {
    users.worker_outside = kFirst;
    users.count = kSlots;
    users.first_cell_outside = kFirst + 1 + (static_cast<uid_t>(::getpid()) % kRanges) * kSlots;
    return users;
  }
  if (BothContain(kSmall - 1, 2)) {
    users.worker_outside = kSmall;
    users.first_cell_outside = kSmall - 1;
    return users;
  }
  if (!IsRootOfTheMachine()) {
    users.other = false;
    return users;
  }
  return absl::UnavailableError(
      "user: this user namespace has no unprivileged user; /proc/self/uid_map maps only root");
}

}  // namespace bkm
