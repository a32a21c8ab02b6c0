// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_ALL_COMMANDS_H_
#define HARNESS_CLI_ALL_COMMANDS_H_

#include <memory>
#include <string>
#include <vector>

#include "harness/cli/command.h"
#include "harness/cli/executor_option.h"

// The commands of the program bkm: those of run_commands.h, and the following.
namespace bkm {

std::unique_ptr<CliCommand> MakeSensitivityCommand();
std::unique_ptr<CliCommand> MakeBisectCommand();
std::unique_ptr<CliCommand> MakeDriftCommand();
std::unique_ptr<CliCommand> MakeAcceptCommand();
std::unique_ptr<CliCommand> MakeCheckCommand();
std::unique_ptr<CliCommand> MakeAuditCommand();
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

// In the order of `bkm --help`.
Commands AllCommands();

// A RayMaker.
absl::StatusOr<ExecutorMaker> MakeRayExecutors(const RayOptions& options);

}  // namespace bkm

#endif  // HARNESS_CLI_ALL_COMMANDS_H_
