// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_USER_NAMESPACE_H_
#define HARNESS_CELL_USER_NAMESPACE_H_

namespace bkm {

// For a worker that is not root: continues in a child that has, inside a user namespace with its
// own processes and mounts, the rights that a sandbox needs. The calling process does not return
// then: it waits, passes SIGTERM and SIGINT on, and ends as the child does. Where the system
// refuses, nothing changes and the caller goes on. Call it before anything starts a thread.
void ContinueInUserNamespace();

}  // namespace bkm

#endif  // HARNESS_CELL_USER_NAMESPACE_H_
