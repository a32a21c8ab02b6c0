// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_COMMAND_H_
#define HARNESS_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

namespace bkm {

// Exit codes of every command.
inline constexpr int kExitAsExpected = 0;
inline constexpr int kExitVerdictsDiffer = 1;
inline constexpr int kExitHarnessError = 2;
inline constexpr int kExitInterrupted = 3;

// The error of an option that this program was linked without: bkm_run.
absl::Status NeedsWholeProgram(const char* option);

// A subcommand of bkm: one file, and one entry of RunCommands() or AllCommands().
class CliCommand {
 public:
  virtual ~CliCommand() = default;
  virtual const char* name() const = 0;
  virtual const char* summary() const = 0;   // one line of `bkm --help`
  virtual const char* examples() const = 0;  // the end of `bkm NAME --help`
  virtual void AddOptions(CLI::App& app) = 0;
  // The exit code; an error if bkm could not do its job.
  virtual absl::StatusOr<int> Run() = 0;
};

using Commands = std::vector<std::unique_ptr<CliCommand>>;

}  // namespace bkm

#endif  // HARNESS_CLI_COMMAND_H_
