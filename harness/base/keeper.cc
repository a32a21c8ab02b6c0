// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace bkm {
namespace {

// Between fork and exec only functions that are safe in signal handlers are called, because another
// thread may have held a lock at the fork. So nothing here allocates.

constexpr char kKeeperName[] = "bkm-keeper";

// Where the keeper's two descriptors lie. All others are closed, so that the program alone holds
// its pipes open.
constexpr int kSignals = 0;
constexpr int kParent = 1;

// The files that keepers hold; -1: a free slot.
struct HeldFile {
  std::atomic<int> file = -1;
};
std::array<HeldFile, 16> held;

bool IsHeld(int fd) {
  for (const HeldFile& slot : held) {
    if (slot.file == fd) return true;
  }
  return false;
}

// Closes all descriptors from `first` on but the held ones.
void CloseFrom(int first) {
  int last_held = first - 1;
  for (const HeldFile& slot : held) last_held = std::max(last_held, slot.file.load());
  for (int fd = first; fd < last_held; ++fd) {
    if (!IsHeld(fd)) ::close(fd);
  }
  if (::syscall(SYS_close_range, static_cast<unsigned>(last_held) + 1, ~0u, 0) == 0) return;
  for (int fd = last_held + 1; fd < 4096; ++fd) ::close(fd);
}

// Kills the children that /proc lists. False when it lists none.
bool KillChildren(int signal) {
  const int list = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (list < 0) return false;
  bool any = false;
  char bytes[4096];
  pid_t pid = 0;
  for (ssize_t count; (count = ::read(list, bytes, sizeof bytes)) > 0;) {
    for (ssize_t i = 0; i < count; ++i) {
      if (bytes[i] >= '0' && bytes[i] <= '9') {
        pid = pid * 10 + (bytes[i] - '0');
      } else if (pid > 0) {
        ::kill(pid, signal);
        any = true;
        pid = 0;
      }
    }
  }
  ::close(list);
  return any;
}

std::string NameOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

// The children of all threads of this process.
std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream file(task.path() / "children");
    for (pid_t pid = 0; file >> pid;) children.push_back(pid);
  }
  return children;
}

// The keeper: all of this runs in a process of its own.
class Keeper {
 public:
  Keeper(pid_t program, bool ends_descendants)
      : program_(program), ends_descendants_(ends_descendants) {}

  [[noreturn]] void Run() {
    for (;;) {
      pollfd fds[2] = {{kSignals, POLLIN, 0}, {kParent, POLLIN, 0}};
      ::poll(fds, 2, -1);
      if (fds[1].revents & POLLIN) EndAll();
      if (fds[0].revents & POLLIN) TakeSignal();
      if (!ended_) continue;
      // A program that was killed had no time to end what it started.
      if (ends_descendants_ || WIFSIGNALED(status_)) EndAll();
      EndAsTheProgram();
    }
  }

 private:
  void TakeSignal() {
    signalfd_siginfo info = {};
    if (::read(kSignals, &info, sizeof info) != sizeof info) return;
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      Reap();
    } else if (signal == kEndAll) {
      EndAll();
    } else if (info.ssi_code <= 0) {
      // Sent by a process. The program gets those of the terminal itself.
      ::kill(program_, signal);
    }
  }

  // Reaps what has ended. False when no child is left.
  bool Reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid <= 0) return pid == 0;
      if (pid != program_) continue;
      ended_ = true;
      status_ = status;
    }
  }

  // The children of what is killed become ours, because we are their subreaper.
  void EndAll() {
    if (!ended_) ::kill(program_, SIGKILL);
    for (int round = 0; round < 5000; ++round) {
      KillChildren(SIGKILL);
      if (!Reap()) return;
      const timespec pause = {.tv_sec = 0, .tv_nsec = 1000000};
      ::nanosleep(&pause, nullptr);
    }
    ended_ = true;  // a process that SIGKILL does not end within seconds waits for a broken disk
  }

  [[noreturn]] void EndAsTheProgram() const {
    if (WIFEXITED(status_)) ::_exit(WEXITSTATUS(status_));
    const int signal = WIFSIGNALED(status_) ? WTERMSIG(status_) : SIGKILL;
    ::prctl(PR_SET_DUMPABLE, 0);
    struct sigaction by_default = {};
    by_default.sa_handler = SIG_DFL;
    ::sigaction(signal, &by_default, nullptr);
    sigset_t all;
    sigfillset(&all);
    ::kill(::getpid(), signal);
    ::sigprocmask(SIG_UNBLOCK, &all, nullptr);
    ::_exit(128 + signal);
  }

  const pid_t program_;
  const bool ends_descendants_;
  bool ended_ = false;
  int status_ = 0;
};

[[noreturn]] void Fail(int report, int error) {
  [[maybe_unused]] const ssize_t ignored = ::write(report, &error, sizeof error);
  ::_exit(127);
}

// Moves `from` to the standard descriptor `to`.
void MoveTo(int from, int to, int report) {
  if (from < 0) return;
  if (from == to) {
    ::fcntl(to, F_SETFD, 0);
  } else if (::dup2(from, to) < 0) {
    Fail(report, errno);
  }
}

[[noreturn]] void RunProgram(const KeptProgram& program, pid_t keeper, int report) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != keeper) ::_exit(127);  // the keeper died before the line above
  MoveTo(program.in, STDIN_FILENO, report);
  MoveTo(program.out, STDOUT_FILENO, report);
  MoveTo(program.err, STDERR_FILENO, report);
  if (program.directory && ::chdir(program.directory) != 0) Fail(report, errno);
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM}) ::sigaction(signal, &by_default, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvpe(program.argv[0], program.argv, program.env);
  Fail(report, errno);
}

// The standard descriptors are about to be used for others: moves `fd` above them.
int Above(int fd) { return fd > STDERR_FILENO ? fd : ::fcntl(fd, F_DUPFD_CLOEXEC, 3); }

[[noreturn]] void RunKeeper(const KeptProgram& program, pid_t parent, int report) {
  ::prctl(PR_SET_NAME, kKeeperName);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (program.own_group) ::setpgid(0, 0);
  // A thread's end would count as the parent's death for PR_SET_PDEATHSIG; a pidfd is exact.
  int watched = static_cast<int>(::syscall(SYS_pidfd_open, parent, 0));
  if (watched < 0) ::prctl(PR_SET_PDEATHSIG, kEndAll);
  if (::getppid() != parent) ::_exit(127);
  report = Above(report);
  const pid_t self = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) Fail(report, errno);
  if (child == 0) RunProgram(program, self, report);
  // Who kills the group must not kill the keeper, which tells how the program ended.
  if (program.own_group) ::setpgid(0, ::getpgid(parent));
  sigset_t all;
  sigfillset(&all);
  const int signals = Above(::signalfd(-1, &all, SFD_CLOEXEC));
  watched = watched < 0 ? -1 : Above(watched);
  ::dup2(signals, kSignals);
  if (watched >= 0) {
    ::dup2(watched, kParent);
  } else {
    ::close(kParent);
  }
  CloseFrom(STDERR_FILENO);
  Keeper(child, program.ends_descendants).Run();
}

}  // namespace

void EndOrphans() {
  const std::string own = NameOf(::getpid());
  for (int round = 0; round < 100; ++round) {
    bool any = false;
    for (const pid_t child : Children()) {
      const std::string name = NameOf(child);
      // A keeper has our name until it has given itself its own.
      if (name.empty() || name == kKeeperName || name == own) continue;
      any = true;
      ::kill(child, SIGKILL);
      while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    if (!any) return;  // the children of those that ended have become ours, too
  }
}

pid_t StartKept(const KeptProgram& program) {
  // What a killed keeper leaves becomes ours: see EndOrphans.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return -errno;
  // The keeper takes signals from a descriptor: none may arrive before that.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t parent = ::getpid();
  const pid_t keeper = ::fork();
  const int fork_error = errno;
  if (keeper == 0) RunKeeper(program, parent, report[1]);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(report[1]);
  int error = keeper < 0 ? fork_error : 0;
  if (keeper > 0) {
    ssize_t count = 0;
    do {
      count = ::read(report[0], &error, sizeof error);
    } while (count < 0 && errno == EINTR);
    if (count != sizeof error) error = 0;
  }
  ::close(report[0]);
  if (error == 0) return keeper;
  if (keeper > 0) {
    while (::waitpid(keeper, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  return -error;
}

HeldByKeepers::HeldByKeepers(int file) {
  for (size_t slot = 0; slot < held.size(); ++slot) {
    int free = -1;
    if (!held[slot].file.compare_exchange_strong(free, file)) continue;
    slot_ = static_cast<int>(slot);
    return;
  }
}

HeldByKeepers::~HeldByKeepers() {
  if (slot_ >= 0) held[static_cast<size_t>(slot_)].file = -1;
}

HeldByKeepers::HeldByKeepers(HeldByKeepers&& other) noexcept
    : slot_(std::exchange(other.slot_, -1)) {}

}  // namespace bkm
