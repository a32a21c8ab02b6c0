// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_SUBPROCESS_H_
#define HARNESS_BASE_SUBPROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/descriptor.h"

namespace bkm {

struct Command {
  std::vector<std::string> argv;               // argv[0] is looked up in PATH
  std::map<std::string, std::string> set_env;  // added to this process's environment
  std::vector<std::string> unset_env;
  bool exact_env = false;           // the environment is set_env alone
  std::filesystem::path directory;  // empty: this process's
  std::string input;                // written to stdin
  std::optional<std::chrono::seconds> timeout;
  // False: Ctrl-C ends the process together with this one. Then a timeout kills it alone, without
  // the processes that it started.
  bool in_own_group = true;
  // The command may run again. One that is killed from outside (SIGKILL: the machine lacks memory,
  // or a person ends it) runs again, up to three times in all; then RunCommand gives Unavailable.
  bool may_run_again = false;
};

// How a process ended. A non-zero exit code is data, not an error.
struct ProcessResult {
  std::string out;
  std::string err;
  int exit_code = 0;  // 128 + the signal, when a signal ended the process
  bool timed_out = false;
  bool ok() const { return exit_code == 0 && !timed_out; }
};

// Runs the command to its end and collects its output. An error means that the command could not be
// started (NotFound: no such program).
absl::StatusOr<ProcessResult> RunCommand(const Command& command);

// Like RunCommand, but a failing process is an error. Its message ends with the last line of
// stderr.
absl::StatusOr<std::string> RunForOutput(const Command& command);

// Programs die with this process, however it ends, and so do the processes that they started
// (harness/base/keeper.h).

// A running process with pipes to its stdin and from its stdout. Closing the pipes does not end or
// reap the process.
struct PipedProcess {
  pid_t pid = -1;
  Descriptor to_child;
  Descriptor from_child;
};
// Starts the command in a process group of its own. Appends its stderr to `stderr_file`; with an
// empty path, stderr is inherited.
absl::StatusOr<PipedProcess> StartPiped(const Command& command,
                                        const std::filesystem::path& stderr_file);

}  // namespace bkm

#endif  // HARNESS_BASE_SUBPROCESS_H_
