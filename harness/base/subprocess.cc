// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/keeper.h"
#include "harness/base/status_macros.h"

extern char** environ;

namespace bkm {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kTriesIfKilled = 3;
// How long output is read after the program's end from what it has left running.
constexpr std::chrono::seconds kAfterTheEnd(2);

std::vector<std::string> Environment(const Command& command) {
  std::vector<std::string> result;
  for (char** entry = environ; !command.exact_env && *entry; ++entry) {
    const std::string name = std::string(*entry).substr(0, std::string(*entry).find('='));
    const bool unset = std::find(command.unset_env.begin(), command.unset_env.end(), name) !=
                       command.unset_env.end();
    if (!unset && !command.set_env.contains(name)) result.push_back(*entry);
  }
  for (const auto& [name, value] : command.set_env)
    result.push_back(absl::StrCat(name, "=", value));
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Starts `command` with these descriptors as its stdin, stdout and stderr (-1: inherited). In a
// group of its own, the child does not get Ctrl-C. Otherwise Ctrl-C ends the child together with
// us.
absl::StatusOr<pid_t> Spawn(const Command& command, int in, int out, int err, bool own_group,
                            bool ends_descendants) {
  std::vector<std::string> argv = command.argv;
  std::vector<std::string> env = Environment(command);
  const std::vector<char*> argv_pointers = Pointers(argv), env_pointers = Pointers(env);
  const pid_t pid =
      StartKept({.argv = argv_pointers.data(),
                 .env = env_pointers.data(),
                 .directory = command.directory.empty() ? nullptr : command.directory.c_str(),
                 .in = in,
                 .out = out,
                 .err = err,
                 .own_group = own_group,
                 .ends_descendants = ends_descendants});
  if (pid == -ENOENT)
    return absl::NotFoundError(
        absl::StrCat("cannot start ", argv[0], ": no such program or folder"));
  if (pid < 0)
    return absl::UnavailableError(
        absl::StrCat("cannot start ", argv[0], ": ", std::strerror(-pid)));
  return pid;
}

// write(2) to a pipe whose reader may be gone: fails with EPIPE instead of raising SIGPIPE.
ssize_t WriteToPipe(int pipe, absl::string_view bytes) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const ssize_t count = ::write(pipe, bytes.data(), bytes.size());
  const int error = errno;
  if (count < 0 && error == EPIPE) {
    const timespec now = {};
    sigtimedwait(&blocked, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return count;
}

// Our ends of the three pipes to a child.
struct Streams {
  Descriptor in;
  Descriptor out;
  Descriptor err;
};

// Appends what can be read now. Closes the descriptor at end of file.
void Drain(Descriptor& from, std::string& into) {
  char buffer[65536];
  const ssize_t count = ::read(from.get(), buffer, sizeof buffer);
  if (count > 0) into.append(buffer, static_cast<size_t>(count));
  if (count == 0 || (count < 0 && errno != EINTR)) from.Close();
}

// A child that ended on its own or by a signal, which nobody has waited for yet.
bool WasKilled(pid_t pid) {
  siginfo_t info = {};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) == 0 &&
         info.si_code != CLD_EXITED;
}

// Feeds stdin and drains stdout and stderr until both end (true) or the deadline passes (false).
// What the program left running may hold them open: it is waited for only a moment.
bool Pump(pid_t pid, Streams streams, const Command& command, ProcessResult& result) {
  const Descriptor watched(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  std::optional<SteadyClock::time_point> give_up;
  const auto deadline = SteadyClock::now() + command.timeout.value_or(std::chrono::hours(24 * 365));
  absl::string_view input = command.input;
  if (input.empty()) streams.in.Close();
  // A write that blocks on a full pipe would keep us from reading the child's output.
  const int in = streams.in.get();
  if (streams.in.valid()) ::fcntl(in, F_SETFL, ::fcntl(in, F_GETFL) | O_NONBLOCK);
  while (streams.out.valid() || streams.err.valid()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyClock::now())
            .count();
    if (left <= 0) return false;
    if (give_up && SteadyClock::now() > *give_up) return true;
    pollfd fds[4] = {{streams.out.get(), POLLIN, 0},
                     {streams.err.get(), POLLIN, 0},
                     {streams.in.get(), POLLOUT, 0},
                     {give_up ? -1 : watched.get(), POLLIN, 0}};
    ::poll(fds, 4, static_cast<int>(std::min<int64_t>(left, give_up ? 50 : 1000)));
    if (fds[3].revents) {
      give_up = SteadyClock::now() + kAfterTheEnd;
      if (WasKilled(pid)) EndOrphans();
    }
    if (fds[0].revents) Drain(streams.out, result.out);
    if (fds[1].revents) Drain(streams.err, result.err);
    if (streams.in.valid() && fds[2].revents) {
      const ssize_t count = WriteToPipe(streams.in.get(), input);
      if (count > 0) input.remove_prefix(static_cast<size_t>(count));
      const bool gone = count < 0 && errno != EINTR && errno != EAGAIN;
      if (gone || input.empty()) streams.in.Close();
    }
  }
  return true;
}

absl::StatusOr<ProcessResult> RunOnce(const Command& command) {
  ASSIGN_OR_RETURN(Pipe in, MakePipe());
  ASSIGN_OR_RETURN(Pipe out, MakePipe());
  ASSIGN_OR_RETURN(Pipe err, MakePipe());
  const bool own_group = command.timeout.has_value() && command.in_own_group;
  ASSIGN_OR_RETURN(const pid_t pid, Spawn(command, in.read.get(), out.write.get(), err.write.get(),
                                          own_group, /*ends_descendants=*/false));
  for (Descriptor* end : {&in.read, &out.write, &err.write}) end->Close();
  ProcessResult result;
  if (!Pump(pid, {std::move(in.write), std::move(out.read), std::move(err.read)}, command,
            result)) {
    result.timed_out = true;
    ::kill(pid, kEndAll);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace

absl::StatusOr<ProcessResult> RunCommand(const Command& command) {
  absl::StatusOr<ProcessResult> result = RunOnce(command);
  if (!command.may_run_again) return result;
  const auto killed = [&] {
    return result.ok() && !result->timed_out && result->exit_code == 128 + SIGKILL;
  };
  for (int tries = 1; tries < kTriesIfKilled && killed(); ++tries) result = RunOnce(command);
  if (!killed()) return result;
  return absl::UnavailableError(absl::StrCat(command.argv[0], " was killed ", kTriesIfKilled,
                                             " times: does this machine have enough free memory?"));
}

absl::StatusOr<std::string> RunForOutput(const Command& command) {
  ASSIGN_OR_RETURN(ProcessResult result, RunCommand(command));
  if (result.ok()) return std::move(result.out);
  const absl::string_view err = absl::StripSuffix(result.err, "\n");
  const std::string last(err.substr(err.rfind('\n') == err.npos ? 0 : err.rfind('\n') + 1));
  return absl::UnavailableError(
      absl::StrCat(absl::StrJoin(command.argv, " "),
                   result.timed_out ? " timed out" : absl::StrCat(" ended with ", result.exit_code),
                   last.empty() ? "" : ": ", last));
}

absl::StatusOr<PipedProcess> StartPiped(const Command& command,
                                        const std::filesystem::path& stderr_file) {
  Descriptor err;
  if (!stderr_file.empty()) {
    err = Descriptor(::open(stderr_file.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644));
    if (!err.valid())
      return absl::UnavailableError(
          absl::StrCat("cannot write ", stderr_file.string(), ": ", std::strerror(errno)));
  }
  ASSIGN_OR_RETURN(Pipe in, MakePipe());
  ASSIGN_OR_RETURN(Pipe out, MakePipe());
  ASSIGN_OR_RETURN(const pid_t pid,
                   Spawn(command, in.read.get(), out.write.get(), err.get(), /*own_group=*/true,
                         /*ends_descendants=*/true));
  return PipedProcess{pid, std::move(in.write), std::move(out.read)};
}

}  // namespace bkm
