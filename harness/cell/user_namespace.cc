// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/user_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <string>

#include "absl/strings/str_cat.h"
#include "harness/base/descriptor.h"

namespace bkm {
namespace {

bool Write(const char* path, const std::string& text) {
  const Descriptor file(::open(path, O_WRONLY | O_CLOEXEC));
  return file.valid() &&
         ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// The user id stays the same; the capabilities apply inside the namespace only.
bool EnterNamespaces() {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) != 0) return false;
  return Write("/proc/self/setgroups", "deny") &&
         Write("/proc/self/uid_map", absl::StrCat(user, " ", user, " 1")) &&
         Write("/proc/self/gid_map", absl::StrCat(group, " ", group, " 1")) &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// Forks the namespace's first process. It reaps, and lives as long as the worker's parent.
pid_t ForkInit() {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGCHLD, SIG_IGN);
  ::close_range(0, UINT_MAX, 0);
  while (true) ::pause();
}

bool MountProc() {
  return ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0;
}

int Wait(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Tries everything up to the mount of /proc in a child, because a process cannot leave a user
// namespace.
bool IsAllowed() {
  const pid_t pid = ::fork();
  if (pid == 0) {
    bool allowed = EnterNamespaces();
    const pid_t init = allowed ? ForkInit() : -1;
    const pid_t inner = init > 0 ? ::fork() : -1;
    if (inner == 0) ::_exit(MountProc() ? 0 : 1);
    allowed = inner > 0 && Wait(inner) == 0;
    if (init > 0) ::kill(init, SIGKILL);
    ::_exit(allowed ? 0 : 1);
  }
  return pid > 0 && Wait(pid) == 0;
}

pid_t g_worker = -1;

void PassOn(int signal) { ::kill(g_worker, signal); }

[[noreturn]] void EndAs(pid_t worker, pid_t init) {
  g_worker = worker;
  for (const int signal : {SIGTERM, SIGINT}) ::signal(signal, PassOn);
  const int status = Wait(worker);
  ::kill(init, SIGKILL);
  Wait(init);
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

}  // namespace

void ContinueInUserNamespace() {
  if (!IsAllowed() || !EnterNamespaces()) return;
  const pid_t init = ForkInit();
  if (init < 0) return;
  const pid_t worker = ::fork();
  if (worker > 0) EndAs(worker, init);
  if (worker < 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  MountProc();
}

}  // namespace bkm
