// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/alone_entry.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/base/descriptor.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/base/subprocess.h"
#include "harness/cell/cell_environment.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr char kAsk[] =
    "import importlib.metadata, json, platform, re, sys; found = {}\n"
    "for one in importlib.metadata.distributions():\n"
    "    name = one.metadata and one.metadata['Name']\n"
    "    if name: found.setdefault(re.sub(r'[-_.]+', '-', name).lower(), one.version)\n"
    "print(json.dumps({'version': platform.python_version(), 'versions': found, 'path': [p for p "
    "in sys.path if p], 'prefixes': [sys.prefix, sys.base_prefix]}))";

constexpr char kStart[] =
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from bkm_cell.alone import main; main()";

constexpr char kImport[] =
    "import importlib, sys\n"
    "for name in sys.argv[1:]:\n"
    "    try: importlib.import_module(name)\n"
    "    except Exception: pass";

// Imports what cells will import, so that they find it compiled: cells may not write there.
void CompilePreload(const InterpreterOptions& options) {
  const fs::path done = options.bytecode / "compiled";
  std::error_code error;
  if (fs::exists(done, error)) return;
  Command command{
      .argv = {options.python.string(), "-I", "-X",
               absl::StrCat("pycache_prefix=", options.bytecode.string()), "-c", kImport},
      .timeout = std::chrono::seconds(300)};
  command.argv.insert(command.argv.end(), options.preload.begin(), options.preload.end());
  const absl::StatusOr<ProcessResult> ran = RunCommand(command);
  if (ran.ok() && ran->ok()) WriteFile(done, "").IgnoreError();
}

// Passes each line on as an event.
void Forward(int from, const EventWriter& events) {
  std::string pending;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(from, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    pending.append(buffer, static_cast<size_t>(n));
    for (size_t end; (end = pending.find('\n')) != pending.npos; pending.erase(0, end + 1))
      events.WriteText(absl::string_view(pending).substr(0, end));
  }
}

}  // namespace

absl::StatusOr<AloneInterpreter> AloneInterpreter::Find(InterpreterOptions options) {
  const auto start = std::chrono::steady_clock::now();
  const std::string python = options.python.string();
  InterpreterReport facts;
  const absl::StatusOr<std::string> answer =
      RunForOutput({.argv = {python, "-I", "-B", "-c", kAsk}, .timeout = std::chrono::seconds(60)});
  if (!answer.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--python ", python, " does not run (", answer.status().message(), ")"));
  }
  ASSIGN_OR_RETURN(const Json json, ParseJson(*answer, python));
  ObjectReader reader(json, python);
  facts.version = reader.String("version");
  if (const Json* versions = reader.Child("versions")) facts.versions = *versions;
  for (const std::string& path : reader.Strings("path")) facts.path.emplace_back(path);
  for (const std::string& path : reader.Strings("prefixes")) facts.path.emplace_back(path);
  RETURN_IF_ERROR(reader.Finish());
  facts.path.push_back(options.python_code);
  if (!options.bytecode.empty()) CompilePreload(options);
  facts.preload_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return AloneInterpreter(std::move(options), std::move(facts));
}

int AloneInterpreter::Run(const CellRequest& request, const EventWriter& events) const {
  for (const auto& [name, value] : CellFolders(request.dir / "work"))
    ::setenv(name.c_str(), value.c_str(), 1);
  absl::StatusOr<Pipe> pipe = MakePipe();
  if (!pipe.ok()) return 1;
  const std::string descriptor = std::to_string(pipe->write.get()), text = ToLine(request.all);
  const pid_t child = ::fork();
  if (child < 0) return 1;
  if (child == 0) {
    ::fcntl(pipe->write.get(), F_SETFD, 0);
    std::vector<const char*> argv = {options_.python.c_str(), "-I", "-B"};
    const std::string prefix = absl::StrCat("pycache_prefix=", options_.bytecode.string());
    if (!options_.bytecode.empty()) argv.insert(argv.end(), {"-X", prefix.c_str()});
    argv.insert(argv.end(), {"-c", kStart, options_.python_code.c_str(), descriptor.c_str(),
                             text.c_str(), nullptr});
    ::execv(options_.python.c_str(), const_cast<char**>(argv.data()));
    ::_exit(127);
  }
  pipe->write.Close();
  Forward(pipe->read.get(), events);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  // Ends by the interpreter's signal, but writes no core file of this process.
  ::signal(WTERMSIG(status), SIG_DFL);
  ::raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

}  // namespace bkm
