// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_TORTURE_PROCESSES_H_
#define HARNESS_TORTURE_PROCESSES_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace bkm {

// A running process of this machine.
struct RunningProcess {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string role;  // runner, worker, cell, keeper, git, python, other
};

// The processes below `root`, which is included as the runner.
std::vector<RunningProcess> ProcessesBelow(pid_t root);

// The processes whose environment contains `text`.
std::vector<pid_t> ProcessesWith(absl::string_view text);

}  // namespace bkm

#endif  // HARNESS_TORTURE_PROCESSES_H_
