// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.

#include "harness/cli/all_commands.h"
#include "harness/cli/command_line.h"
#include "harness/cli/console.h"
#include "harness/cli/manual.h"

namespace bkm {
namespace {

class CompletionCommand : public CliCommand {
 public:
  const char* name() const override { return "completion"; }
  const char* summary() const override {
    return "Print a script that completes bkm's commands and options in a shell";
  }
  const char* examples() const override {
    return "Examples:\n"
           "  source <(bkm completion bash)     # in ~/.bashrc\n"
           "  source <(bkm completion zsh)      # in ~/.zshrc, after compinit";
  }
  void AddOptions(CLI::App& app) override {
    app.add_option("shell", shell_, "bash or zsh")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh"}));
  }
  absl::StatusOr<int> Run() override {
    CommandLine line(AllCommands());
    const Manual manual = ManualOf(line.app());
    Print(shell_ == "bash" ? BashCompletion(manual) : ZshCompletion(manual));
    return kExitAsExpected;
  }

 private:
  std::string shell_;
};

class ManCommand : public CliCommand {
 public:
  const char* name() const override { return "man"; }
  const char* summary() const override { return "Print the manual page, bkm(1)"; }
  const char* examples() const override {
    return "Examples:\n"
           "  bkm man | man -l -\n"
           "  bkm man > ~/.local/share/man/man1/bkm.1";
  }
  void AddOptions(CLI::App&) override {}
  absl::StatusOr<int> Run() override {
    CommandLine line(AllCommands());
    Print(ManPage(ManualOf(line.app())));
    return kExitAsExpected;
  }
};

}  // namespace

std::unique_ptr<CliCommand> MakeCompletionCommand() {
  return std::make_unique<CompletionCommand>();
}
std::unique_ptr<CliCommand> MakeManCommand() { return std::make_unique<ManCommand>(); }

}  // namespace bkm
