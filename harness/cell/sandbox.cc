// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/sandbox.h"

#include <arpa/inet.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "harness/base/descriptor.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/cell/mounts.h"
#include "harness/cell/pid_namespace.h"
#include "harness/cell/system_error.h"

namespace bkm {
namespace {

absl::Status EnterNetwork() {
  if (::unshare(CLONE_NEWNET) != 0) return SystemError("cannot create a network namespace");
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0)
    return SystemError("cannot bring the loopback up");
  return absl::OkStatus();
}

// Drops the capabilities to change the sandbox or the machine. File permissions are unaffected.
absl::Status DropCapabilities() {
  constexpr int kDropped[] = {CAP_SYS_ADMIN, CAP_SYS_MODULE, CAP_SYS_BOOT,    CAP_SYS_TIME,
                              CAP_SYS_RAWIO, CAP_SYS_PTRACE, CAP_NET_ADMIN,   CAP_MKNOD,
                              CAP_SYSLOG,    CAP_SYS_CHROOT, CAP_SYS_RESOURCE};
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return SystemError("cannot read capabilities");
  for (const int capability : kDropped) {
    ::prctl(PR_CAPBSET_DROP, capability);
    const uint32_t mask = ~CAP_TO_MASK(capability);
    data[CAP_TO_INDEX(capability)].effective &= mask;
    data[CAP_TO_INDEX(capability)].permitted &= mask;
    data[CAP_TO_INDEX(capability)].inheritable &= mask;
  }
  if (::syscall(SYS_capset, &header, data) != 0) return SystemError("cannot drop capabilities");
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return absl::OkStatus();
}

// Runs `trial` in a child, so that its changes end with the child.
template <typename F>
bool WorksInChild(F trial) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(trial() ? 0 : 1);
  int status = 1;
  while (pid > 0 && ::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool PidNamespaceWorks() {
  return WorksInChild([] {
    const absl::StatusOr<PidNamespace> space = PidNamespace::Create();
    return space.ok() && space->Enter().ok() && WorksInChild([] { return true; }) &&
           PidNamespace::Leave().ok();
  });
}

}  // namespace

std::vector<std::string> Sandbox::Names() const {
  std::vector<std::string> names;
  if (mount) names.push_back("mount");
  if (network) names.push_back("network");
  if (pid) names.push_back("pid");
  return names;
}

Sandbox ProbeSandbox() {
  Sandbox sandbox;
  sandbox.pid = PidNamespaceWorks();
  sandbox.network = WorksInChild([] { return EnterNetwork().ok(); });
  std::error_code error;
  const absl::StatusOr<std::filesystem::path> folder =
      CreateTempDirectory(std::filesystem::temp_directory_path(error), "bkm-sandbox-");
  if (!folder.ok()) return sandbox;
  sandbox.mount = WorksInChild([&] { return EnterMounts({*folder, {*folder}, {}}, false).ok(); });
  RemoveTree(*folder).IgnoreError();
  return sandbox;
}

absl::Status EnterSandbox(const Sandbox& sandbox, const CellView& view) {
  if (sandbox.mount) RETURN_IF_ERROR(EnterMounts(view, sandbox.pid));
  if (sandbox.network) RETURN_IF_ERROR(EnterNetwork());
  // System V shared memory and queues outlive processes: in a namespace they end with the cell.
  if (sandbox.mount || sandbox.network) ::unshare(CLONE_NEWIPC);
  return DropCapabilities();
}

}  // namespace bkm
