// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_MANUAL_H_
#define HARNESS_CLI_MANUAL_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace bkm {

// The command line as CLI11 describes it. Completions, man page and --help share this description,
// so that they cannot contradict each other.
struct OptionManual {
  std::vector<std::string> names;  // "--json", "-j"; for a positional argument only its name
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

// Scripts that complete commands, options and file names: `source <(bkm completion bash)`.
std::string BashCompletion(const Manual& manual);
std::string ZshCompletion(const Manual& manual);

// bkm(1), for `man -l`.
std::string ManPage(const Manual& manual);

}  // namespace bkm

#endif  // HARNESS_CLI_MANUAL_H_
