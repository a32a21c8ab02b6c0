// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_COMMAND_LINE_H_
#define HARNESS_CLI_COMMAND_LINE_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "harness/cli/command.h"

namespace bkm {

// The commands of a program, and the only description of its command line.
class CommandLine {
 public:
  explicit CommandLine(Commands commands);
  CommandLine(const CommandLine&) = delete;

  CLI::App& app() { return app_; }
  const Commands& commands() const { return commands_; }
  // The command that app().parse() chose; null before parsing.
  CliCommand* chosen() const { return chosen_; }

 private:
  CLI::App app_;
  Commands commands_;
  CliCommand* chosen_ = nullptr;
};

}  // namespace bkm

#endif  // HARNESS_CLI_COMMAND_LINE_H_
