// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cli/command_line.h"

#include <string>
#include <utility>

#include "harness/base/version.h"

namespace bkm {

CommandLine::CommandLine(Commands commands)
    : app_("Proves which versions of trainer engines and model libraries work together.", "bkm"),
      commands_(std::move(commands)) {
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
