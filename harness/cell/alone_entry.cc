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

constexpr char kPreload[] =
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from bkm_cell.preload import "
    "import_recorded; import_recorded()";

// Imports what cells will import, once, so that they find it compiled: they may not write there.
void CompileRecorded(const fs::path& python, const fs::path& python_code,
                     const fs::path& bytecode) {
  const fs::path done = bytecode / "recorded";
  std::error_code error;
  if (fs::exists(done, error)) return;
  const auto ran = RunCommand(
      {.argv = {python.string(), "-I", "-X", absl::StrCat("pycache_prefix=", bytecode.string()),
                "-c", kPreload, python_code.string()},
       .timeout = std::chrono::seconds(300)});
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

absl::StatusOr<AloneInterpreter> AloneInterpreter::Find(fs::path python, fs::path python_code,
                                                        fs::path bytecode) {
  const auto start = std::chrono::steady_clock::now();
  AloneInterpreter found;
  found.python_ = std::move(python);
  found.python_code_ = std::move(python_code);
  found.bytecode_ = std::move(bytecode);
  const absl::StatusOr<std::string> answer =
      RunForOutput({.argv = {found.python_.string(), "-I", "-B", "-c", kAsk},
                    .timeout = std::chrono::seconds(60)});
  if (!answer.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--python ", found.python_.string(), " does not run (", answer.status().message(), ")"));
  }
  ASSIGN_OR_RETURN(const Json json, ParseJson(*answer, found.python_.string()));
  ObjectReader reader(json, found.python_.string());
  found.facts_.version = reader.String("version");
  if (const Json* versions = reader.Child("versions")) found.facts_.versions = *versions;
  for (const std::string& path : reader.Strings("path")) found.facts_.path.emplace_back(path);
  for (const std::string& path : reader.Strings("prefixes")) found.facts_.path.emplace_back(path);
  RETURN_IF_ERROR(reader.Finish());
  found.facts_.path.push_back(found.python_code_);
  EnterCellEnvironment(found.python_);
  if (!found.bytecode_.empty()) CompileRecorded(found.python_, found.python_code_, found.bytecode_);
  found.facts_.preload_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return found;
}

int AloneInterpreter::Run(const CellRequest& request, const EventWriter& events) const {
  for (const auto& [name, value] : CellFolders(request.dir / "work"))
    ::setenv(name.c_str(), value.c_str(), 1);
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return 1;
  const std::string descriptor = std::to_string(pipe[1]), text = ToLine(request.all);
  const pid_t child = ::fork();
  if (child < 0) return 1;
  if (child == 0) {
    ::fcntl(pipe[1], F_SETFD, 0);
    std::vector<const char*> argv = {python_.c_str(), "-I", "-B"};
    const std::string prefix = absl::StrCat("pycache_prefix=", bytecode_.string());
    if (!bytecode_.empty()) argv.insert(argv.end(), {"-X", prefix.c_str()});
    argv.insert(argv.end(),
                {"-c", kStart, python_code_.c_str(), descriptor.c_str(), text.c_str(), nullptr});
    ::execv(python_.c_str(), const_cast<char**>(argv.data()));
    ::_exit(127);
  }
  ::close(pipe[1]);
  Forward(pipe[0], events);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  // The cell ended so: without a core of this process.
  ::signal(WTERMSIG(status), SIG_DFL);
  ::raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

}  // namespace bkm
