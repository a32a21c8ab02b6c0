// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/cell_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "harness/base/status_macros.h"
#include "harness/cell/private_descriptor.h"
#include "harness/cell/resource_limits.h"
#include "harness/cell/system_error.h"

namespace bkm {
namespace {

bool ReaderIsGone(int pipe) {
  pollfd fd = {pipe, 0, 0};
  return ::poll(&fd, 1, 0) == 1 && (fd.revents & POLLERR);
}

bool TakeStreams(const CellOrder& order) {
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return ::dup2(nothing.get(), 0) == 0 && ::dup2(order.out.get(), 1) == 1 &&
         ::dup2(order.err.get(), 2) == 2;
}

// A folder that a preloaded module keeps open would be a way around the cell's root.
void CloseFolders() {
  std::vector<int> folders;
  DIR* listing = ::opendir("/proc/self/fd");
  if (!listing) return;
  while (const dirent* entry = ::readdir(listing)) {
    int number = 0;
    struct stat info = {};
    if (!absl::SimpleAtoi(entry->d_name, &number) || number == ::dirfd(listing)) continue;
    if (::fstat(number, &info) == 0 && S_ISDIR(info.st_mode)) folders.push_back(number);
  }
  ::closedir(listing);
  for (const int folder : folders) ::close(folder);
}

void ResetSignals() {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) ::signal(signal, SIG_DFL);
  // Like a normal start of Python: a write fails instead.
  for (const int signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Returns the protections that hold.
absl::StatusOr<std::vector<std::string>> Settle(const CellOrder& order,
                                                const CellQuestion& question,
                                                const CellSetting& setting) {
  const CellRequest& request = question.request;
  // Where the machine refuses, the watchdog alone holds the limits.
  for (const Descriptor& door : order.doors) WriteAll(door.get(), "0");
  RETURN_IF_ERROR(ApplyResourceLimits(request));
  CellView view{
      .dir = request.dir, .reads = request.reads, .gpu = !request.on_cpu, .user = order.user};
  for (size_t i = 0; i < order.attachments.size(); ++i)
    view.attachments.push_back(
        {question.attached[i], Descriptor(::dup(order.attachments[i].get()))});
  ASSIGN_OR_RETURN(std::vector<std::string> holding, EnterSandbox(setting.sandbox, view));
  // The change of the user cleared it.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return SystemError("cannot follow the worker");
  if (::chdir((request.dir / "work").c_str()) != 0) return SystemError("cannot enter work/");
  return holding;
}

// The cell, from the fork to its end.
[[noreturn]] void BeCell(const CellOrder& order, const CellSetting& setting, int events) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setsid();
  ResetSignals();
  const EventWriter writer(events);
  if (!TakeStreams(order)) ::_exit(1);
  const absl::StatusOr<CellQuestion> question = ReadQuestion(order);
  const absl::StatusOr<std::vector<std::string>> holding =
      question.ok() ? Settle(order, *question, setting) : question.status();
  if (!holding.ok()) {
    writer.Write(Json{{"failed_to_start", std::string(holding.status().message())}});
    ::_exit(1);
  }
  ClosePrivateDescriptors(events);
  CloseFolders();
  // The worker may have died before PDEATHSIG was set. Until now this process also held its end of
  // the pipe.
  if (ReaderIsGone(events)) ::_exit(1);
  writer.Write(Json{{"set", {{"sandbox", *holding}}}});
  // From here on, the log takes the worker's own facts and "failed_to_start" from nobody.
  writer.Write(Json{{"handed_over", true}});
  // _exit, in the cell and in a child of the subject that returns to this point: the interpreter is
  // never torn down, and such a child must not run on.
  ::_exit(setting.body(question->request, writer));
}

// Forks into `space` if there is one.
absl::StatusOr<pid_t> ForkInto(const std::optional<PidNamespace>& space,
                               const CellSetting& setting) {
  if (space) RETURN_IF_ERROR(space->Enter());
  const pid_t pid = setting.fork();
  const int error = errno;
  if (pid == 0) return pid;
  if (space) RETURN_IF_ERROR(PidNamespace::Leave());
  errno = error;
  if (pid < 0) return SystemError("cannot fork");
  return pid;
}

}  // namespace

void CellProcess::Kill() {
  ::kill(pid, SIGKILL);
  ::kill(-pid, SIGKILL);  // its session's group, for where there is no namespace
  if (space) space->Kill();
}

absl::StatusOr<CellProcess> StartCell(const CellOrder& order, const CellSetting& setting) {
  ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  CellProcess cell;
  cell.events = ToPrivate(std::move(pipe.read));
  Descriptor to_worker = ToPrivate(std::move(pipe.write));
  if (!cell.events.valid() || !to_worker.valid()) return SystemError("cannot keep a pipe");
  ::fcntl(cell.events.get(), F_SETFL, O_NONBLOCK);
  if (setting.sandbox.HasNamespaces()) {
    ASSIGN_OR_RETURN(PidNamespace space, PidNamespace::Create());
    cell.space.emplace(std::move(space));
  }
  ASSIGN_OR_RETURN(cell.pid, ForkInto(cell.space, setting));
  if (cell.pid == 0) BeCell(order, setting, to_worker.get());
  cell.pidfd = ToPrivate(Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, cell.pid, 0))));
  if (!cell.pidfd.valid()) {
    const int error = errno;
    cell.Kill();
    ::waitpid(cell.pid, nullptr, 0);
    errno = error;
    return SystemError("cannot watch the cell");
  }
  return cell;
}

}  // namespace bkm
