// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_RUN_COMMANDS_H_
#define HARNESS_CLI_RUN_COMMANDS_H_

#include <filesystem>
#include <memory>
#include <vector>

#include "harness/cli/command.h"
#include "harness/cli/executor_option.h"
#include "harness/cli/plan_options.h"

// The commands of the program bkm_run: what a user needs until the first verdict and to understand
// it. tools/bkm builds this program first, because it compiles in two thirds of the time. A command
// stands here if it needs no room above `session`.
namespace bkm {

// Sets `statically_red` of the cells of a plan, as MarkStaticallyRed
// (harness/history/api_session.h) does. Null in a program that reads no sources (bkm_run).
using StaticCheck = absl::StatusOr<int> (*)(const std::filesystem::path& mirrors,
                                            const std::filesystem::path& matrix_folder,
                                            const Matrix& matrix, std::vector<PlannedCell>& plan,
                                            RunObserver& observer);

// What these commands take of rooms that bkm_run does not have.
struct WholeProgram {
  RayMaker ray = nullptr;
  UrgencyOrder urgent_first = nullptr;
  StaticCheck static_check = nullptr;
};

std::unique_ptr<CliCommand> MakeRunCommand(const WholeProgram& whole);
std::unique_ptr<CliCommand> MakePlanCommand(UrgencyOrder urgent_first);
std::unique_ptr<CliCommand> MakeExplainCommand();
std::unique_ptr<CliCommand> MakeJudgeCommand();
std::unique_ptr<CliCommand> MakeReplayCommand();
std::unique_ptr<CliCommand> MakeCostCommand();

// In the order of `bkm --help`.
Commands RunCommands(const WholeProgram& whole = {});

}  // namespace bkm

#endif  // HARNESS_CLI_RUN_COMMANDS_H_
