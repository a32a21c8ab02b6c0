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
  std::map<std::string, std::string> set_env;  // added to our own environment
  std::vector<std::string> unset_env;
  std::filesystem::path directory;  // empty: ours
  std::string input;                // given to stdin
  std::optional<std::chrono::seconds> timeout;
};

// How a process that could be started ended. A non-zero exit is data, not an error.
struct ProcessResult {
  std::string out;
  std::string err;
  int exit_code = 0;  // 128 + signal when a signal ended it
  bool timed_out = false;
  bool ok() const { return exit_code == 0 && !timed_out; }
};

// Runs to the end and collects the output. An error means that it could not be started (NotFound:
// no such program).
absl::StatusOr<ProcessResult> RunCommand(const Command& command);

// As RunCommand, but a failing process is an error that ends with the last line it wrote to stderr.
absl::StatusOr<std::string> RunForOutput(const Command& command);

// A running process with pipes to its stdin and from its stdout; stderr goes to `stderr_file` or is
// inherited.
struct PipedProcess {
  pid_t pid = -1;
  Descriptor to_child;
  Descriptor from_child;
};
absl::StatusOr<PipedProcess> StartPiped(const Command& command,
                                        const std::filesystem::path& stderr_file);

}  // namespace bkm

#endif  // HARNESS_BASE_SUBPROCESS_H_
