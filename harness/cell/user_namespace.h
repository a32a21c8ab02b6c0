// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_USER_NAMESPACE_H_
#define HARNESS_CELL_USER_NAMESPACE_H_

namespace bkm {

// For a worker that is not root: continues in a child inside a user namespace with its own
// processes and mounts, where the child has the capabilities that a sandbox needs. The calling
// process does not return: it forwards SIGTERM and SIGINT, and ends with the child's status. If the
// system refuses, the call changes nothing and returns. Call it before any thread starts.
void ContinueInUserNamespace();

}  // namespace bkm

#endif  // HARNESS_CELL_USER_NAMESPACE_H_
