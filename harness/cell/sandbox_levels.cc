// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/sandbox_levels.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/descriptor.h"
#include "harness/cell/cell_users.h"
#include "harness/cell/confined_process.h"
#include "harness/cell/confinement.h"
#include "harness/cell/landlock.h"
#include "harness/cell/sandbox.h"
#include "harness/cell/seccomp_filter.h"
#include "harness/cell/system_error.h"

namespace bkm {
namespace {

using Missing = std::vector<std::string>;

// What `trial` finds in a child, which ends with it.
Missing InChild(const std::function<Missing()>& trial) {
  absl::StatusOr<Pipe> pipe = MakePipe();
  if (!pipe.ok()) return {std::string(pipe.status().message())};
  const pid_t child = ::fork();
  if (child == 0) {
    WriteAll(pipe->write.get(), ToLine(Json(trial())));
    ::_exit(0);
  }
  pipe->write.Close();
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(pipe->read.get(), buffer, sizeof buffer)) != 0;) {
    if (n > 0) text.append(buffer, static_cast<size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  while (child > 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  const Json answer = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_array()) return {"the process that tried the sandbox died"};
  return answer.get<Missing>();
}

// Creates a user namespace with one more namespace in a child that ends at once.
bool NamespaceWorks(unsigned long flag) {
  const pid_t child = static_cast<pid_t>(
      ::syscall(SYS_clone, CLONE_NEWUSER | flag | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) ::_exit(0);
  if (child < 0) return false;
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return true;
}

Missing MissingNamespaces() {
  constexpr struct {
    const char* name;
    unsigned long flag;
  } kAll[] = {{"mount", CLONE_NEWNS}, {"network", CLONE_NEWNET}, {"pid", CLONE_NEWPID},
              {"ipc", CLONE_NEWIPC},  {"uts", CLONE_NEWUTS},     {"cgroup", CLONE_NEWCGROUP}};
  if (!NamespaceWorks(0)) {
    const absl::Status why = SystemError("user: cannot create a user namespace");
    return {absl::StrCat(why.message(),
                         "; sysctl user.max_user_namespaces and kernel.unprivileged_userns_clone, "
                         "or the container's seccomp profile, may forbid it")};
  }
  Missing missing;
  for (const auto& one : kAll) {
    if (!NamespaceWorks(one.flag))
      missing.emplace_back(
          SystemError(absl::StrCat(one.name, ": cannot create a namespace")).message());
  }
  return missing;
}

Missing MissingSeccomp() {
  return InChild([]() -> Missing {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    const absl::Status status = InstallSeccompFilter(Filtered::kCell);
    if (status.ok()) return {};
    return {absl::StrCat("seccomp: ", std::string(status.message()))};
  });
}

// Everything at once, as a worker and its cells would have it.
Missing TryFull() {
  const absl::StatusOr<CellUsers> users = ChooseCellUsers();
  if (!users.ok()) return {std::string(users.status().message())};
  if (const absl::Status own = EnterOwnMounts(); !own.ok()) return {std::string(own.message())};
  absl::StatusOr<Confinement> confinement = SystemConfinement(*users);
  if (!confinement.ok()) return {std::string(confinement.status().message())};
  const Sandbox sandbox = SharedWithCells(*confinement);
  const absl::StatusOr<pid_t> child = StartConfined(*confinement, [&]() -> absl::Status {
    const auto held = TrySandbox(sandbox, users->CellInside(0));
    if (!held.ok()) return held.status();
    ::_exit(0);
  });
  if (!child.ok()) return {std::string(child.status().message())};
  while (::waitpid(*child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {};
}

Missing TryWeak() {
  if (std::string lack = MissingInLandlock(LandlockVersion()); !lack.empty()) return {lack};
  const auto held = TrySandbox({.level = SandboxLevel::kWeak, .shared = {"/usr"}}, 0);
  if (held.ok()) return {};
  return {std::string(held.status().message())};
}

}  // namespace

std::vector<std::string> MissingProtections(SandboxLevel level) {
  if (level == SandboxLevel::kOff) return {};
  Missing missing = MissingSeccomp();
  if (level == SandboxLevel::kFull) {
    for (std::string& one : InChild(MissingNamespaces)) missing.push_back(std::move(one));
  }
  if (!missing.empty()) return missing;
  return InChild(level == SandboxLevel::kFull ? TryFull : TryWeak);
}

Json DescribeSandboxLevels() {
  Json levels = Json::object();
  for (const SandboxLevel level : {SandboxLevel::kFull, SandboxLevel::kWeak, SandboxLevel::kOff}) {
    const Missing missing = MissingProtections(level);
    levels[std::string(Name(level))] = {{"available", missing.empty()}, {"missing", missing}};
  }
  return levels;
}

absl::Status LevelNotAvailable(SandboxLevel level, const std::vector<std::string>& missing) {
  return absl::FailedPreconditionError(absl::StrCat(
      "this machine does not offer the sandbox level '", Name(level), "' (",
      absl::StrJoin(missing, "; "),
      level == SandboxLevel::kFull ? "): allow it, or give --sandbox weak or --sandbox off"
                                   : "): allow it, or give --sandbox off"));
}

absl::Status LevelNotAvailable(SandboxLevel level, const absl::Status& why) {
  return LevelNotAvailable(level, std::vector<std::string>{std::string(why.message())});
}

}  // namespace bkm
