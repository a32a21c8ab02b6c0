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

// A subcommand of bkm: one file and one entry of AllCommands().
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

std::unique_ptr<CliCommand> MakeRunCommand();
std::unique_ptr<CliCommand> MakePlanCommand();
std::unique_ptr<CliCommand> MakeExplainCommand();
std::unique_ptr<CliCommand> MakeJudgeCommand();
std::unique_ptr<CliCommand> MakeReplayCommand();
std::unique_ptr<CliCommand> MakeCostCommand();
std::unique_ptr<CliCommand> MakeSensitivityCommand();
std::unique_ptr<CliCommand> MakeBisectCommand();
std::unique_ptr<CliCommand> MakeDriftCommand();
std::unique_ptr<CliCommand> MakeAcceptCommand();
std::unique_ptr<CliCommand> MakeCheckCommand();
std::unique_ptr<CliCommand> MakeCleanCommand();
std::unique_ptr<CliCommand> MakeTortureCommand();
std::unique_ptr<CliCommand> MakeSelftestCommand();
std::unique_ptr<CliCommand> MakeTimelineCommand();
std::unique_ptr<CliCommand> MakeApicheckCommand();
std::unique_ptr<CliCommand> MakeMapCommand();
std::unique_ptr<CliCommand> MakeWhichCommand();
std::unique_ptr<CliCommand> MakeSiteCommand();
std::unique_ptr<CliCommand> MakeCompletionCommand();
std::unique_ptr<CliCommand> MakeManCommand();
std::unique_ptr<CliCommand> MakePublishCommand();
std::unique_ptr<CliCommand> MakeDiffCommand();
std::unique_ptr<CliCommand> MakeMergeCommand();
std::unique_ptr<CliCommand> MakePackCommand();
std::unique_ptr<CliCommand> MakeWorkCommand();
std::unique_ptr<CliCommand> MakeUnpackCommand();
std::unique_ptr<CliCommand> MakeServeCommand();

std::vector<std::unique_ptr<CliCommand>> AllCommands();

}  // namespace bkm

#endif  // HARNESS_CLI_COMMAND_H_
