// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <memory>

#include "harness/base/did_you_mean.h"
#include "harness/base/disturbance.h"
#include "harness/cli/command_line.h"
#include "harness/cli/console.h"
#ifdef BKM_ONLY_RUNS
#include "harness/cli/run_commands.h"
#else
#include "harness/cli/all_commands.h"
#endif

namespace bkm {

namespace {

// The message if the first argument names no command: CLI11 would not suggest one.
std::string UnknownCommand(int argc, char** argv, const Commands& commands) {
  if (argc < 2 || argv[1][0] == '-') return "";
  std::vector<std::string> names;
  for (const auto& command : commands) {
    if (command->name() == std::string(argv[1])) return "";
    names.push_back(command->name());
  }
  return std::string("unknown command '") + argv[1] + "'" + DidYouMean(argv[1], names);
}

// One sentence on what is wrong with the command line. CLI11 uses two, and suggests nothing.
std::string UsageError(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const CLI::App& at = chosen.empty() ? app : *chosen[0];
  const std::string help =
      at.get_name() == app.get_name() ? "bkm --help" : "bkm " + at.get_name() + " --help";
  std::vector<std::string> names;
  for (const CLI::Option* option : at.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::vector<std::string> extras = app.remaining(/*recurse=*/true);
  if (extras.empty()) return std::string(error.what()) + " (" + help + ")";
  if (extras[0].rfind("-", 0) == 0)
    return "unknown option '" + extras[0] + "'" + DidYouMean(extras[0], names);
  return "unexpected argument '" + extras[0] + "' (" + help + ")";
}

// Cells of root run as other users, who read the environments, probes and trees that this process
// and its uv make. Who else may enter their folders is up to those who made the folders above.
void LetCellsRead() {
  constexpr mode_t kOfOthers = S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH;
  if (::geteuid() == 0) ::umask(::umask(0) & ~kOfOthers);
}

int Main(int argc, char** argv) {
  LetCellsRead();
#ifdef BKM_ONLY_RUNS
  CommandLine line(RunCommands());
#else
  CommandLine line(AllCommands());
#endif
  CLI::App& app = line.app();
  if (const std::string error = UnknownCommand(argc, argv, line.commands()); !error.empty()) {
    PrintErrorf("bkm: %s\n", error.c_str());
    return kExitHarnessError;
  }
  if (argc < 2) {
    PrintError(app.help());
    return kExitHarnessError;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    PrintErrorf("bkm: %s\n", UsageError(app, error).c_str());
    return kExitHarnessError;
  }
  const absl::StatusOr<std::unique_ptr<Disturbance>> disturbance = Disturbance::FromEnvironment();
  const absl::StatusOr<int> exit_code =
      disturbance.ok() ? line.chosen()->Run() : disturbance.status();
  if (exit_code.ok()) return *exit_code;
  PrintErrorf("bkm: %s\n", std::string(exit_code.status().message()).c_str());
  return kExitHarnessError;
}

}  // namespace
}  // namespace bkm

int main(int argc, char** argv) {
  try {
    return bkm::Main(argc, argv);
  } catch (const std::exception& error) {
    bkm::PrintErrorf("bkm: this is a bug: %s\n", error.what());
    return bkm::kExitHarnessError;
  }
}
