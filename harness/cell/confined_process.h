// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_CONFINED_PROCESS_H_
#define HARNESS_CELL_CONFINED_PROCESS_H_

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/cell/cell_users.h"
#include "harness/cell/minimal_root.h"
#include "harness/model/sandbox_level.h"

namespace bkm {

// A place of its own for a process and all that it starts.
struct Confinement {
  SandboxLevel level = SandboxLevel::kFull;
  CellUsers users;
  // kFull: the root folder.
  std::vector<Attachment> attachments;
  std::vector<std::pair<std::filesystem::path, std::string>> links;
  std::vector<std::pair<std::filesystem::path, std::string>> files;
  // Hides in /proc what tells of the machine. Not for a worker: from its /proc the kernel judges
  // whether its cells may mount theirs.
  bool hide = false;
};

// For kFull, before anything of the machine is shown to others: from now on this process's mounts
// are its own, and it has the right to bind them. Someone who is not root enters a user namespace.
absl::Status EnterOwnMounts();

// Forks a child. kFull: the child is the first process of its own namespaces, in the root folder
// asked for, as the worker's user, with all capabilities of its user namespace. The child ends with
// this process. `body` runs in it and returns only an error; the call then returns that error.
absl::StatusOr<pid_t> StartConfined(const Confinement& confinement,
                                    const std::function<absl::Status()>& body);

// In the child: replaces the process by `program`, an open file, with these variables and with the
// descriptors 0 to `last_descriptor`.
absl::Status Execute(int program, const std::vector<std::string>& arguments,
                     const std::map<std::string, std::string>& environment, int last_descriptor);

}  // namespace bkm

#endif  // HARNESS_CELL_CONFINED_PROCESS_H_
