// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_CELL_USERS_H_
#define HARNESS_CELL_CELL_USERS_H_

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bkm {

// The users as which a worker and its cells run. Users and groups have the same numbers. "Inside"
// is the number in the worker's user namespace, "outside" the one of the supervisor.
struct CellUsers {
  // If false, all run as the user who started bkm: only root can run others as someone else.
  bool other = false;
  uid_t worker_outside = 0;
  uid_t first_cell_outside = 0;
  gid_t group_outside = 0;  // only if !other
  int count = 1;            // of the cells' users

  // Each cell in flight has its own user, so that no cell uses up what the kernel grants to a user.
  uid_t CellOutside(int slot) const { return first_cell_outside + Slot(slot); }
  uid_t CellInside(int slot) const { return kFirstInside + (other ? 1 + Slot(slot) : 0); }
  static constexpr uid_t kFirstInside = 999;  // the worker

  // The contents of /proc/PID/uid_map and gid_map.
  std::string UserMap() const;
  std::string GroupMap() const;

 private:
  uid_t Slot(int slot) const { return static_cast<uid_t>(slot % count); }
};

// Whether a map as in /proc/self/uid_map contains all of these numbers.
bool MapContains(absl::string_view map, uid_t first, uid_t count);

// Chooses users for this process. An error, if this process is the machine's root and may not
// become anyone else.
absl::StatusOr<CellUsers> ChooseCellUsers();

}  // namespace bkm

#endif  // HARNESS_CELL_CELL_USERS_H_
