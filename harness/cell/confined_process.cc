// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/confined_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/cell/capabilities.h"
#include "harness/cell/mount_tree.h"
#include "harness/cell/private_descriptor.h"
#include "harness/cell/system_error.h"

namespace bkm {
namespace {

constexpr unsigned long kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                                      CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

absl::Status WriteSetting(const std::string& path, absl::string_view text) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid() ||
      ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return SystemError(absl::StrCat("cannot write ", path));
  return absl::OkStatus();
}

absl::Status WriteMaps(pid_t child, const CellUsers& users) {
  const std::string folder = absl::StrCat("/proc/", child, "/");
  if (!users.other) RETURN_IF_ERROR(WriteSetting(folder + "setgroups", "deny"));
  RETURN_IF_ERROR(WriteSetting(folder + "uid_map", users.UserMap()));
  return WriteSetting(folder + "gid_map", users.GroupMap());
}

absl::Status EnterRoot(const Confinement& confinement) {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return SystemError("cannot make private /");
  std::vector<Attachment> all;
  for (const char* path : {"/tmp", "/dev/shm"}) {
    ASSIGN_OR_RETURN(Descriptor tree, MakeMemoryTree("256m"));
    all.push_back({path, std::move(tree)});
  }
  for (const Attachment& one : confinement.attachments)
    all.push_back({one.path, Descriptor(::fcntl(one.tree.get(), F_DUPFD_CLOEXEC, 0))});
  ASSIGN_OR_RETURN(const MinimalRoot root, MinimalRoot::Create());
  for (const auto& [path, content] : confinement.files) RETURN_IF_ERROR(root.File(path, content));
  RETURN_IF_ERROR(root.AttachAll(std::move(all)));
  for (const auto& [path, target] : confinement.links) RETURN_IF_ERROR(root.Link(path, target));
  RETURN_IF_ERROR(root.Proc(confinement.hide ? ProcView::kHidden : ProcView::kWhole));
  return root.Enter();
}

absl::Status BeConfined(const Confinement& confinement, int maps_written) {
  ::umask(022);
  if (confinement.level != SandboxLevel::kFull) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return SystemError("cannot follow the supervisor");
    return absl::OkStatus();
  }
  char byte = 0;
  if (::read(maps_written, &byte, 1) != 1)
    return absl::UnavailableError("the supervisor ended before its worker started");
  RETURN_IF_ERROR(BecomeUserWithCapabilities(CellUsers::kFirstInside, CellUsers::kFirstInside));
  // The change of the user cleared these.
  if (::prctl(PR_SET_DUMPABLE, 1) != 0 || ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
    return SystemError("cannot follow the supervisor");
  return EnterRoot(confinement);
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

absl::Status EnterOwnMounts() {
  if (::geteuid() == 0) {
    if (::unshare(CLONE_NEWNS) != 0) return SystemError("mount: cannot create a mount namespace");
  } else {
    const uid_t user = ::geteuid();
    const gid_t group = ::getegid();
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
      return SystemError("user: cannot create a user namespace");
    RETURN_IF_ERROR(WriteSetting("/proc/self/setgroups", "deny"));
    RETURN_IF_ERROR(WriteSetting("/proc/self/uid_map", absl::StrCat(user, " ", user, " 1")));
    RETURN_IF_ERROR(WriteSetting("/proc/self/gid_map", absl::StrCat(group, " ", group, " 1")));
  }
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return SystemError("mount: cannot make mounts private");
  return absl::OkStatus();
}

absl::StatusOr<pid_t> StartConfined(const Confinement& confinement,
                                    const std::function<absl::Status()>& body) {
  ASSIGN_OR_RETURN(Pipe maps, MakePipe());
  ASSIGN_OR_RETURN(Pipe errors, MakePipe());
  errors.write = ToPrivate(std::move(errors.write));  // the body uses low numbers
  const unsigned long flags = confinement.level == SandboxLevel::kFull ? kNamespaces : 0;
  // Not glibc's clone, which asks for a stack: like fork, the child continues here.
  const pid_t child =
      static_cast<pid_t>(::syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child < 0) return SystemError("cannot create the namespaces of a sandbox");
  if (child == 0) {
    maps.write.Close();
    absl::Status status = BeConfined(confinement, maps.read.get());
    if (status.ok()) status = body();
    WriteAll(errors.write.get(), status.message());
    ::_exit(2);
  }
  errors.write.Close();
  absl::Status status;
  if (confinement.level == SandboxLevel::kFull) {
    status = WriteMaps(child, confinement.users);
    if (status.ok()) WriteAll(maps.write.get(), "x");
  }
  maps.write.Close();
  // Empty once the child has replaced itself by its program.
  const std::string error = ReadAll(errors.read.get());
  if (status.ok() && error.empty()) return child;
  ::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return status.ok() ? absl::UnavailableError(error) : status;
}

absl::Status Execute(int program, const std::vector<std::string>& arguments,
                     const std::map<std::string, std::string>& environment, int last_descriptor) {
  std::vector<std::string> argv = arguments;
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(absl::StrCat(name, "=", value));
  for (const int signal : {SIGPIPE, SIGTERM, SIGINT, SIGCHLD}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int descriptor = 0; descriptor <= last_descriptor; ++descriptor)
    ::fcntl(descriptor, F_SETFD, 0);
  ::close_range(static_cast<unsigned>(last_descriptor) + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);
  ::execveat(program, "", Pointers(argv).data(), Pointers(variables).data(), AT_EMPTY_PATH);
  return SystemError(absl::StrCat("cannot start ", arguments.front()));
}

}  // namespace bkm
