// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_CAPABILITIES_H_
#define HARNESS_CELL_CAPABILITIES_H_

#include <sys/types.h>

#include <initializer_list>

#include "absl/status/status.h"

namespace bkm {

// Becomes `user` and keeps its capabilities. In the supervisor's child, which has all of them in
// its own user namespace.
absl::Status BecomeUserWithCapabilities(uid_t user, gid_t group);

// Keeps only `kept`, also over the next execve.
absl::Status KeepOnlyCapabilities(std::initializer_list<int> kept);

// After an execve: the next one passes no capability on.
absl::Status ClearAmbientCapabilities();

// Becomes `user`, unless it is that user already, and drops every capability from every set for
// good.
absl::Status DropAllCapabilities(uid_t user, gid_t group);

}  // namespace bkm

#endif  // HARNESS_CELL_CAPABILITIES_H_
