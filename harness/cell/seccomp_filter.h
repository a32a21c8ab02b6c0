// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_SECCOMP_FILTER_H_
#define HARNESS_CELL_SECCOMP_FILTER_H_

#include "absl/status/status.h"

namespace bkm {

// Who is filtered. A worker may still create the namespaces and mounts of its cells. A cell without
// namespaces may not create sockets by which it would reach services of the machine, except TCP,
// nor change attributes of files, nor how other processes of its user are scheduled and limited.
// kWithoutSockets: no sockets at all.
enum class Filtered { kWorker, kCell, kCellWithoutNamespaces, kWithoutSockets };

// Filters the system calls of this process and of all that it starts, for good. The list, with the
// reason for each group, is in seccomp_filter.cc. The process must have no_new_privs.
absl::Status InstallSeccompFilter(Filtered filtered);

}  // namespace bkm

#endif  // HARNESS_CELL_SECCOMP_FILTER_H_
