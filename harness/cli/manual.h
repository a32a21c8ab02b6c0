// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_MANUAL_H_
#define HARNESS_CLI_MANUAL_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace bkm {

// What the command line takes, read out of its one description (CLI11's), so that the completions
// and the man page cannot say anything else than --help does.
struct OptionManual {
  std::vector<std::string> names;  // "--json", "-j"; of a positional argument its name alone
  bool is_positional = false;
  bool is_required = false;
  bool takes_value = false;
  bool is_list = false;
  std::string help;
};
struct CommandManual {
  std::string name;
  std::string summary;
  std::string examples;
  std::vector<OptionManual> options;
};
struct Manual {
  std::string summary;
  std::string footer;
  std::vector<OptionManual> options;  // of bkm itself
  std::vector<CommandManual> commands;
};

Manual ManualOf(const CLI::App& app);

// Scripts for a shell to read: `source <(bkm completion bash)`. They complete commands and options,
// and file names where a value is asked for.
std::string BashCompletion(const Manual& manual);
std::string ZshCompletion(const Manual& manual);

// bkm(1), for `man -l`.
std::string ManPage(const Manual& manual);

}  // namespace bkm

#endif  // HARNESS_CLI_MANUAL_H_
