// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_COMMAND_LINE_H_
#define HARNESS_CLI_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "harness/cli/command.h"

namespace bkm {

// Every command of bkm, and the only description of the command line.
class CommandLine {
 public:
  CommandLine();
  CommandLine(const CommandLine&) = delete;

  CLI::App& app() { return app_; }
  const std::vector<std::unique_ptr<CliCommand>>& commands() const { return commands_; }
  // The command that app().parse() chose; null before parsing.
  CliCommand* chosen() const { return chosen_; }

 private:
  CLI::App app_;
  std::vector<std::unique_ptr<CliCommand>> commands_;
  CliCommand* chosen_ = nullptr;
};

}  // namespace bkm

#endif  // HARNESS_CLI_COMMAND_LINE_H_
