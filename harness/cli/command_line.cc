// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cli/command_line.h"

#include <string>

#include "harness/base/version.h"

namespace bkm {

std::vector<std::unique_ptr<CliCommand>> AllCommands() {
  std::vector<std::unique_ptr<CliCommand>> commands;
  commands.push_back(MakeRunCommand());
  commands.push_back(MakePlanCommand());
  commands.push_back(MakeExplainCommand());
  commands.push_back(MakeJudgeCommand());
  commands.push_back(MakeReplayCommand());
  commands.push_back(MakeCostCommand());
  commands.push_back(MakeSensitivityCommand());
  commands.push_back(MakeBisectCommand());
  commands.push_back(MakeTimelineCommand());
  commands.push_back(MakeSelftestCommand());
  commands.push_back(MakeApicheckCommand());
  commands.push_back(MakeMapCommand());
  commands.push_back(MakeWhichCommand());
  commands.push_back(MakeSiteCommand());
  commands.push_back(MakeMergeCommand());
  commands.push_back(MakePackCommand());
  commands.push_back(MakeWorkCommand());
  commands.push_back(MakeUnpackCommand());
  commands.push_back(MakeServeCommand());
  commands.push_back(MakePublishCommand());
  commands.push_back(MakeDiffCommand());
  commands.push_back(MakeDriftCommand());
  commands.push_back(MakeAcceptCommand());
  commands.push_back(MakeCheckCommand());
  commands.push_back(MakeCleanCommand());
  commands.push_back(MakeTortureCommand());
  commands.push_back(MakeCompletionCommand());
  commands.push_back(MakeManCommand());
  return commands;
}

CommandLine::CommandLine()
    : app_("Proves which versions of trainer engines and model libraries work together.", "bkm"),
      commands_(AllCommands()) {
  app_.require_subcommand(1);
  app_.set_version_flag("--version", std::string("bkm ") + kVersion, "Print the version and exit");
  app_.footer(
      "Exit codes: 0 as expected; 1 a result differs from what is expected; 2 bkm could not do its "
      "job; 3 interrupted.");
  for (const auto& command : commands_) {
    CLI::App* sub = app_.add_subcommand(command->name(), command->summary());
    sub->footer(command->examples());
    command->AddOptions(*sub);
    sub->callback([this, &command] { chosen_ = command.get(); });
  }
}

}  // namespace bkm
