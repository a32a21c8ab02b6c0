// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// cell_worker: runs the cells of one runtime, each in a fork of an interpreter with preloaded
// packages. harness/cell/README.md describes its options.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/cell/alone_entry.h"
#include "harness/cell/interpreter.h"
#include "harness/cell/private_descriptor.h"
#include "harness/cell/python_entry.h"
#include "harness/cell/sandbox.h"
#include "harness/cell/server.h"
#include "harness/cell/user_namespace.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  bool once = false;
  std::string python;
  std::string python_code;
  std::string preload;
  std::string kernels;
  std::string bytecode;
  std::string request;
  bool alone = false;
  size_t jobs = 1;
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

// The paths that every cell of this environment must be able to read.
std::vector<fs::path> EnvironmentPaths(const Arguments& arguments, const InterpreterReport& facts) {
  std::vector<fs::path> paths = facts.path;
  paths.push_back(fs::path(arguments.python).parent_path().parent_path());
  std::error_code error;
  paths.push_back(fs::canonical(arguments.python, error).parent_path().parent_path());
  for (const std::string& path : {arguments.kernels, arguments.bytecode}) {
    if (!path.empty()) paths.push_back(path);
  }
  return paths;
}

// Sets up everything that cells share, then runs the loop.
absl::Status Serve(const Arguments& arguments, int out) {
  Sandbox sandbox = ProbeSandbox();
  if (!sandbox.IsWhole()) {
    ContinueInUserNamespace();
    sandbox = ProbeSandbox();
  }
  ASSIGN_OR_RETURN(std::vector<std::string> preload, ReadPreload(arguments.preload));
  std::string request;
  if (arguments.once) {
    ASSIGN_OR_RETURN(const Json json, ReadJsonFile(arguments.request));
    request = ToLine(json);
  }
  InterpreterReport facts;
  ServerOptions options;
  InterpreterOptions interpreter = {.python = arguments.python,
                                    .python_code = arguments.python_code,
                                    .preload = std::move(preload),
                                    .bytecode = arguments.bytecode};
  if (arguments.alone) {
    ASSIGN_OR_RETURN(const AloneInterpreter alone, AloneInterpreter::Find(std::move(interpreter)));
    facts = alone.facts();
    options.setting.body = [alone](const CellRequest& cell, const EventWriter& events) {
      return alone.Run(cell, events);
    };
  } else {
    ASSIGN_OR_RETURN(facts, StartInterpreter(interpreter));
    options.setting.body = RunPythonEntry;
  }
  if (!arguments.once) {
    Say(out, {{"type", "ready"},
              {"python", facts.version},
              {"versions", facts.versions},
              {"preload_s", facts.preload_s},
              {"sandbox", sandbox.Names()},
              {"preload_errors", facts.preload_errors}});
  }
  options.jobs = arguments.jobs;
  options.out = out;
  options.only_finished = arguments.once;
  options.versions = facts.versions;
  options.setting.sandbox = sandbox;
  options.setting.reads = EnvironmentPaths(arguments, facts);
  options.kernels = arguments.kernels;
  if (!arguments.once) options.in = ToPrivate(Descriptor(::dup(0)));
  Server server(std::move(options));
  if (arguments.once) server.Take(request);
  server.Run();
  return absl::OkStatus();
}

// Standard output belongs to the protocol; all other output goes to stderr.
Descriptor TakeStandardOutput() {
  Descriptor out = ToPrivate(Descriptor(::dup(1)));
  ::dup2(2, 1);
  return out;
}

void AddOptions(CLI::App* command, Arguments& arguments) {
  command->add_option("--python", arguments.python, "the environment's interpreter")->required();
  command->add_option("--python-code", arguments.python_code, "the folder that holds bkm_cell")
      ->required();
  command->add_option("--preload", arguments.preload, "a file with a module per line");
  command->add_flag(
      "--alone", arguments.alone,
      "start the interpreter anew for each cell; it may have any version; no preloading");
  command->add_option("--kernels", arguments.kernels, "a library with CPU kernels for torch");
  command->add_option("--bytecode", arguments.bytecode,
                      "folder of compiled Python, instead of beside the sources; the preloaded "
                      "modules are added");
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
  CLI11_PARSE(app, argc, argv);
  arguments.once = once->parsed();
  for (std::string* path :
       {&arguments.python, &arguments.python_code, &arguments.kernels, &arguments.bytecode}) {
    if (!path->empty()) *path = fs::absolute(*path).lexically_normal();
  }
  const Descriptor out = TakeStandardOutput();
  const absl::Status status = Serve(arguments, out.get());
  if (status.ok()) return 0;
  Say(out.get(), {{"type", "fatal"}, {"message", std::string(status.message())}});
  return 2;
}

}  // namespace
}  // namespace bkm

int main(int argc, char** argv) {
  const int code = bkm::Main(argc, argv);
  std::fflush(nullptr);
  ::_exit(code);  // the interpreter is never torn down
}
