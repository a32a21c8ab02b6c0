// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/confine.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/cell/capabilities.h"
#include "harness/cell/cell_folder.h"
#include "harness/cell/confinement.h"
#include "harness/cell/orphans.h"
#include "harness/cell/sandbox.h"
#include "harness/cell/sandbox_levels.h"
#include "harness/cell/seccomp_filter.h"
#include "harness/cell/system_error.h"
#include "harness/cell/system_view.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr int kTimedOut = 124;

int StatusOf(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

std::map<std::string, std::string> Environment(const ConfineOptions& options) {
  const std::string temporary =
      options.level == SandboxLevel::kFull || options.writes.empty() ? "/tmp" : options.writes[0];
  std::map<std::string, std::string> environment = {
      {"PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"},
      {"LANG", "C.UTF-8"},
      {"HOME", temporary},
      {"TMPDIR", temporary}};
  for (const auto& [name, value] : options.environment) environment[name] = value;
  return environment;
}

absl::Status LimitMemory(int64_t mib) {
  const rlim_t bytes = static_cast<rlim_t>(mib) << 20;
  const rlimit limit = {bytes, bytes};
  const rlimit no_core = {1, 1};
  if (::setrlimit(RLIMIT_CORE, &no_core) != 0) return SystemError("cannot limit core files");
  if (mib > 0 && ::setrlimit(RLIMIT_DATA, &limit) != 0) return SystemError("cannot limit memory");
  return absl::OkStatus();
}

absl::Status EnterLevel(const ConfineOptions& options, const CellUsers& users) {
  switch (options.level) {
    case SandboxLevel::kFull:
      RETURN_IF_ERROR(DropAllCapabilities(users.CellInside(0), users.CellInside(0)));
      return InstallSeccompFilter(Filtered::kCell);
    case SandboxLevel::kWeak: {
      std::vector<fs::path> reads = SystemPaths();
      reads.insert(reads.end(), options.reads.begin(), options.reads.end());
      return EnterWeakSandbox(reads, options.writes);
    }
    case SandboxLevel::kOff:
      break;
  }
  return absl::OkStatus();
}

[[noreturn]] void BeProgram(const ConfineOptions& options, const CellUsers& users) {
  ::setsid();
  absl::Status status = LimitMemory(options.memory_mib);
  if (status.ok()) status = EnterLevel(options, users);
  const fs::path folder = options.writes.empty() ? fs::path("/") : options.writes[0];
  if (status.ok() && ::chdir(folder.c_str()) != 0)
    status = SystemError(absl::StrCat("cannot enter ", folder.string()));
  if (status.ok()) {
    std::vector<std::string> arguments = options.command;
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::clearenv();
    for (const auto& [name, value] : Environment(options)) ::setenv(name.c_str(), value.c_str(), 1);
    ::close_range(3, UINT_MAX, 0);
    ::execvp(argv[0], argv.data());
    status = SystemError(absl::StrCat("cannot start ", options.command[0]));
  }
  std::cerr << "confine: " << status.message() << "\n";
  ::_exit(127);
}

// The first process of the namespaces: what the program leaves behind ends with it.
[[noreturn]] void BeInit(const ConfineOptions& options, const CellUsers& users) {
  const pid_t program = ::fork();
  if (program == 0) BeProgram(options, users);
  ::close_range(3, UINT_MAX, 0);
  if (program < 0) ::_exit(127);
  int status = 0;
  for (pid_t ended; (ended = ::wait(&status)) != program;) {
    if (ended < 0 && errno != EINTR) ::_exit(127);
  }
  ::_exit(StatusOf(status));
}

absl::StatusOr<Confinement> Prepare(const ConfineOptions& options) {
  Confinement confinement;
  if (options.level != SandboxLevel::kFull) {
    confinement.level = options.level;
    return confinement;
  }
  ASSIGN_OR_RETURN(const CellUsers users, ChooseCellUsers());
  RETURN_IF_ERROR(EnterOwnMounts());
  ASSIGN_OR_RETURN(confinement, SystemConfinement(users));
  confinement.hide = true;
  for (const fs::path& path : options.writes) {
    if (users.other) RETURN_IF_ERROR(ChangeOwner(path, users.CellOutside(0)));
    RETURN_IF_ERROR(AddPath(confinement, path, Access::kWrite));
  }
  for (const fs::path& path : options.reads)
    RETURN_IF_ERROR(AddPath(confinement, path, Access::kRead));
  return confinement;
}

}  // namespace

absl::StatusOr<int> Confine(const ConfineOptions& options) {
  for (const auto* paths : {&options.reads, &options.writes}) {
    for (const fs::path& path : *paths) {
      std::error_code error;
      if (!fs::exists(path, error))
        return absl::NotFoundError(absl::StrCat("there is no ", path.string(), " to show"));
    }
  }
  // Without a process namespace, what the program leaves behind comes to us.
  AdoptOrphans();
  const absl::StatusOr<Confinement> confinement = Prepare(options);
  const absl::StatusOr<pid_t> child =
      confinement.ok() ? StartConfined(*confinement,
                                       [&]() -> absl::Status {
                                         if (options.level == SandboxLevel::kFull)
                                           RETURN_IF_ERROR(BringLoopbackUp());
                                         BeInit(options, confinement->users);
                                       })
                       : confinement.status();
  if (!child.ok()) {
    const std::vector<std::string> missing = MissingProtections(options.level);
    return missing.empty() ? child.status() : LevelNotAvailable(options.level, missing);
  }
  const Descriptor watch(static_cast<int>(::syscall(SYS_pidfd_open, *child, 0)));
  pollfd ended = {watch.get(), POLLIN, 0};
  const int patience = options.timeout_s > 0 ? static_cast<int>(options.timeout_s * 1000) : -1;
  int polled = 0;
  while ((polled = ::poll(&ended, 1, patience)) < 0 && errno == EINTR) {
  }
  if (polled == 0) ::kill(*child, SIGKILL);
  int status = 0;
  while (::waitpid(*child, &status, 0) < 0 && errno == EINTR) {
  }
  KillOrphans();
  return polled == 0 ? kTimedOut : StatusOf(status);
}

}  // namespace bkm
