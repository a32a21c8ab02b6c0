// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// cell_worker: runs the cells of one runtime, each in a fork of an interpreter with preloaded
// packages, in a sandbox. harness/cell/README.md describes its options.
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/cell/confine.h"
#include "harness/cell/observed_trees.h"
#include "harness/cell/private_descriptor.h"
#include "harness/cell/sandbox_levels.h"
#include "harness/cell/supervisor.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string level = "full";
  std::string python;
  std::string python_code;
  std::string preload;
  std::string kernels;
  std::string bytecode;
  std::string request;
  bool alone = false;
  int jobs = 1;
  std::vector<std::string> reads;
  std::vector<std::string> writes;
  std::vector<std::string> variables;
  double timeout_s = 0;
  int64_t memory_mib = 0;
  std::vector<std::string> command;
};

void Say(int out, const Json& json) {
  const std::string line = ToLine(json) + "\n";
  [[maybe_unused]] const ssize_t written = ::write(out, line.data(), line.size());
}

absl::StatusOr<std::vector<std::string>> ReadPreload(const std::string& file) {
  std::vector<std::string> modules;
  if (file.empty()) return modules;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::string module(absl::StripAsciiWhitespace(line));
    if (!module.empty() && module[0] != '#') modules.push_back(module);
  }
  return modules;
}

fs::path Absolute(const std::string& path) {
  return path.empty() ? fs::path() : fs::absolute(path).lexically_normal();
}

std::vector<fs::path> AllAbsolute(const std::vector<std::string>& paths) {
  std::vector<fs::path> result;
  for (const std::string& path : paths) result.push_back(Absolute(path));
  return result;
}

absl::StatusOr<int> Serve(const Arguments& arguments, bool once, int out) {
  SupervisorOptions options = {.level = *SandboxLevelFromName(arguments.level),
                               .python = Absolute(arguments.python),
                               .python_code = Absolute(arguments.python_code),
                               .kernels = Absolute(arguments.kernels),
                               .bytecode = Absolute(arguments.bytecode),
                               .reads = AllAbsolute(arguments.reads),
                               .alone = arguments.alone,
                               .jobs = arguments.jobs,
                               .out = out,
                               .only_finished = once};
  ASSIGN_OR_RETURN(options.preload, ReadPreload(arguments.preload));
  std::string request;
  if (once) {
    ASSIGN_OR_RETURN(const Json json, ReadJsonFile(arguments.request));
    request = ToLine(json);
  } else {
    options.in = ToPrivate(Descriptor(::dup(0)));
  }
  Supervisor supervisor(std::move(options), std::make_unique<ObservedTrees>());
  RETURN_IF_ERROR(supervisor.Start());
  if (once) supervisor.Take(request);
  return supervisor.Run();
}

// Standard output belongs to the protocol; all other output goes to stderr.
Descriptor TakeStandardOutput() {
  Descriptor out = ToPrivate(Descriptor(::dup(1)));
  ::dup2(2, 1);
  return out;
}

void AddLevel(CLI::App* command, Arguments& arguments) {
  command->add_option("--sandbox", arguments.level, "full (default), weak or off")
      ->check(CLI::IsMember({"full", "weak", "off"}));
}

void AddOptions(CLI::App* command, Arguments& arguments) {
  AddLevel(command, arguments);
  command->add_option("--python", arguments.python, "the environment's interpreter")->required();
  command->add_option("--python-code", arguments.python_code, "the folder that holds bkm_cell")
      ->required();
  command->add_option("--preload", arguments.preload, "a file with a module per line");
  command->add_flag(
      "--alone", arguments.alone,
      "the interpreter itself becomes the worker: any CPython from 3.10 on, with or without "
      "libpython");
  command->add_option("--kernels", arguments.kernels, "a library with CPU kernels for torch");
  command->add_option("--bytecode", arguments.bytecode,
                      "folder of compiled Python, instead of beside the sources; the preloaded "
                      "modules are added");
  command
      ->add_option("--read", arguments.reads,
                   "a path that cells may read beside the environment; may be repeated")
      ->allow_extra_args(false);
}

void AddConfineOptions(CLI::App* command, Arguments& arguments) {
  AddLevel(command, arguments);
  command->add_option("--read", arguments.reads, "a path to show; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--write", arguments.writes,
                   "a path to write to, given to the sandbox's user; the first is the program's "
                   "folder; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--env", arguments.variables, "NAME=VALUE; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--timeout", arguments.timeout_s, "seconds until the program is killed");
  command->add_option("--memory-mib", arguments.memory_mib, "memory of each process");
  command->add_option("command", arguments.command, "the program and its arguments, after --")
      ->required();
}

absl::StatusOr<int> RunConfine(const Arguments& arguments) {
  ConfineOptions options = {.level = *SandboxLevelFromName(arguments.level),
                            .reads = AllAbsolute(arguments.reads),
                            .writes = AllAbsolute(arguments.writes),
                            .timeout_s = arguments.timeout_s,
                            .memory_mib = arguments.memory_mib,
                            .command = arguments.command};
  for (const std::string& variable : arguments.variables) {
    const size_t equals = variable.find('=');
    if (equals == std::string::npos)
      return absl::InvalidArgumentError(
          absl::StrCat("--env ", variable, " has no value: write NAME=VALUE"));
    options.environment[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  return Confine(options);
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Runs cells of one runtime.");
  app.require_subcommand(1);
  CLI::App* serve = app.add_subcommand("serve", "JSON lines in, JSON lines out");
  AddOptions(serve, arguments);
  serve->add_option("--jobs", arguments.jobs, "cells in flight")->check(CLI::PositiveNumber);
  CLI::App* once = app.add_subcommand("once", "one request, one reply");
  AddOptions(once, arguments);
  once->add_option("--request", arguments.request, "a file with the request")->required();
  CLI::App* levels =
      app.add_subcommand("sandbox-levels", "what this machine offers, as one line of JSON");
  CLI::App* confine = app.add_subcommand("confine", "any program in the sandbox, without network");
  AddConfineOptions(confine, arguments);
  CLI11_PARSE(app, argc, argv);
  if (levels->parsed()) {
    Say(1, DescribeSandboxLevels());
    return 0;
  }
  if (confine->parsed()) {
    const absl::StatusOr<int> status = RunConfine(arguments);
    if (status.ok()) return *status;
    std::fprintf(stderr, "cell_worker: %s\n", std::string(status.status().message()).c_str());
    return 2;
  }
  const Descriptor out = TakeStandardOutput();
  const absl::StatusOr<int> status = Serve(arguments, once->parsed(), out.get());
  if (status.ok()) return *status;
  Say(out.get(), {{"type", "fatal"}, {"message", std::string(status.status().message())}});
  return 2;
}

}  // namespace
}  // namespace bkm

int main(int argc, char** argv) {
  const int code = bkm::Main(argc, argv);
  std::fflush(nullptr);
  if (code > 128) {  // ends as its worker did, but without a core file
    ::prctl(PR_SET_DUMPABLE, 0);
    ::signal(code - 128, SIG_DFL);
    ::raise(code - 128);
  }
  ::_exit(code);  // the interpreter is never torn down
}
