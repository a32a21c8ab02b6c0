// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/cell_process.h"

#include <Python.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/cell/private_descriptor.h"
#include "harness/cell/resource_limits.h"
#include "harness/cell/system_error.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// The cell's descriptors 0, 1 and 2. The worker opens them while all folders are still writable.
struct Streams {
  Descriptor in;
  Descriptor out;
  Descriptor err;
};

absl::StatusOr<Descriptor> Open(const fs::path& path, int flags) {
  Descriptor file = ToPrivate(Descriptor(::open(path.c_str(), flags | O_CLOEXEC, 0644)));
  if (!file.valid()) return SystemError(absl::StrCat("cannot open ", path.string()));
  return file;
}

absl::StatusOr<Streams> OpenStreams(const fs::path& dir) {
  constexpr int kFlags = O_CREAT | O_WRONLY | O_TRUNC | O_APPEND;
  Streams streams;
  ASSIGN_OR_RETURN(streams.in, Open("/dev/null", O_RDONLY));
  ASSIGN_OR_RETURN(streams.out, Open(dir / "stdout", kFlags));
  ASSIGN_OR_RETURN(streams.err, Open(dir / "stderr", kFlags));
  return streams;
}

// Recreates `work` and `tensors`: a subject must not find files of the previous run.
absl::Status MakeFolders(const fs::path& dir) {
  for (const char* name : {"work", "tensors"}) RETURN_IF_ERROR(RemoveTree(dir / name));
  for (const char* name : {"work/home", "work/tmp", "tensors"})
    RETURN_IF_ERROR(CreateDirectories(dir / name));
  return absl::OkStatus();
}

bool ReaderIsGone(int pipe) {
  pollfd fd = {pipe, 0, 0};
  return ::poll(&fd, 1, 0) == 1 && (fd.revents & POLLERR);
}

void TakeStreams(const Streams& streams) {
  ::dup2(streams.in.get(), 0);
  ::dup2(streams.out.get(), 1);
  ::dup2(streams.err.get(), 2);
}

void ResetSignals() {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) ::signal(signal, SIG_DFL);
  // Like a normal start of Python: a write fails instead.
  for (const int signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

absl::Status Settle(const CellRequest& request, const CellSetting& setting) {
  RETURN_IF_ERROR(ApplyResourceLimits(request));
  CellView view{request.dir, {request.dir / "work", request.dir / "tensors"}, setting.reads};
  view.reads.insert(view.reads.end(), request.reads.begin(), request.reads.end());
  RETURN_IF_ERROR(EnterSandbox(setting.sandbox, view));
  if (::chdir((request.dir / "work").c_str()) != 0) return SystemError("cannot enter work/");
  return absl::OkStatus();
}

// The cell, from the fork to its end.
[[noreturn]] void BeCell(const CellRequest& request, const CellSetting& setting,
                         const Streams& streams, int events) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setsid();
  TakeStreams(streams);
  ClosePrivateDescriptors(events);
  // The worker may have died before PDEATHSIG was set. Until now this process also held its end of
  // the pipe.
  if (ReaderIsGone(events)) ::_exit(1);
  ResetSignals();
  const EventWriter writer(events);
  if (const absl::Status status = Settle(request, setting); !status.ok()) {
    writer.Write(Json{{"failed_to_start", std::string(status.message())}});
    ::_exit(1);
  }
  writer.Write(Json{{"set", {{"sandbox", setting.sandbox.Names()}}}});
  // _exit, in the cell and in a child of the subject that returns to this point: the interpreter is
  // never torn down, and such a child must not run on.
  ::_exit(setting.body(request, writer));
}

pid_t Fork() {
  if (!Py_IsInitialized()) return ::fork();
  PyOS_BeforeFork();
  const pid_t pid = ::fork();
  if (pid == 0) {
    PyOS_AfterFork_Child();
  } else {
    PyOS_AfterFork_Parent();
  }
  return pid;
}

// Forks into `space` if there is one.
absl::StatusOr<pid_t> ForkInto(const std::optional<PidNamespace>& space) {
  if (space) RETURN_IF_ERROR(space->Enter());
  const pid_t pid = Fork();
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

absl::StatusOr<CellProcess> StartCell(const CellRequest& request, const CellSetting& setting) {
  RETURN_IF_ERROR(MakeFolders(request.dir));
  ASSIGN_OR_RETURN(const Streams streams, OpenStreams(request.dir));
  ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  CellProcess cell;
  cell.events = ToPrivate(std::move(pipe.read));
  Descriptor to_worker = ToPrivate(std::move(pipe.write));
  if (!cell.events.valid() || !to_worker.valid()) return SystemError("cannot keep a pipe");
  ::fcntl(cell.events.get(), F_SETFL, O_NONBLOCK);
  if (setting.sandbox.pid) {
    ASSIGN_OR_RETURN(PidNamespace space, PidNamespace::Create());
    cell.space.emplace(std::move(space));
  }
  ASSIGN_OR_RETURN(cell.pid, ForkInto(cell.space));
  if (cell.pid == 0) BeCell(request, setting, streams, to_worker.get());
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
