// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/running_cell.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "harness/base/status_macros.h"

namespace bkm {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// Cuts a file that grew past the limit before the cell was stopped.
void Trim(const Descriptor& file, int64_t limit_mib) {
  struct stat info = {};
  const off_t most = static_cast<off_t>(limit_mib) << 20;
  if (::fstat(file.get(), &info) == 0 && info.st_size > most) [[maybe_unused]]
    const int failed = ::ftruncate(file.get(), most);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunningCell>> RunningCell::Start(CellOrder order,
                                                                const CellSetting& setting) {
  ASSIGN_OR_RETURN(CellProcess process, StartCell(order, setting));
  order.question.Close();  // the cell has it
  order.attachments.clear();
  order.doors.clear();
  ProcessTree tree(process.pid, process.space ? process.space->init_pid() : -1,
                   /*own_proc=*/process.space.has_value());
  return std::unique_ptr<RunningCell>(
      new RunningCell(std::move(order), std::move(process), std::move(tree)));
}

RunningCell::RunningCell(CellOrder order, CellProcess process, ProcessTree tree)
    : order_(std::move(order)),
      process_(std::move(process)),
      watchdog_(order_, std::move(tree), OwnResidentKib()) {}

void RunningCell::AddPollFds(std::vector<pollfd>& fds) const {
  if (reaped_) {
    fds.push_back({process_.space->init_pidfd(), POLLIN, 0});
    return;
  }
  fds.push_back({process_.pidfd.get(), POLLIN, 0});
  if (process_.events.valid()) fds.push_back({process_.events.get(), POLLIN, 0});
}

std::chrono::steady_clock::time_point RunningCell::NextCheck() const {
  return reaped_ ? std::chrono::steady_clock::time_point::max() : watchdog_.NextCheck();
}

bool RunningCell::Tend() {
  if (!reaped_) {
    Drain();
    Overrun overrun = watchdog_.Check(std::chrono::steady_clock::now());
    if (overrun.stop != StopCause::kNone) End(overrun.stop, std::move(overrun.message));
    pollfd ended = {process_.pidfd.get(), POLLIN, 0};
    if (::poll(&ended, 1, 0) != 1) return false;
    Reap();
  }
  if (process_.space && !process_.space->TryReap()) return false;
  Drain();  // the rest of the pipe
  if (exit_.stop == StopCause::kNone && !log_.overrun().empty()) {
    exit_.stop = StopCause::kEvents;
    exit_.stop_message = log_.overrun();
  }
  if (exit_.stop == StopCause::kNone) {
    // A cell that writes too much just before its end is over the limit, too.
    const Overrun overrun = watchdog_.CheckFiles();
    exit_.stop = overrun.stop;
    exit_.stop_message = overrun.message;
  }
  if (const int64_t most = order_.limits.output_mib; most > 0) {
    Trim(order_.out, most);
    Trim(order_.err, most);
  }
  return true;
}

void RunningCell::End(StopCause stop, std::string message) {
  if (reaped_ || exit_.stop != StopCause::kNone) return;
  exit_.stop = stop;
  exit_.stop_message = std::move(message);
  process_.Kill();
}

// Kills the processes that the cell left behind, then reaps it: until then its pid is not reused.
void RunningCell::Reap() {
  process_.Kill();
  KillSeen();
  while (::wait4(process_.pid, &exit_.wait_status, 0, &usage_) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  wall_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void RunningCell::KillSeen() {
  if (process_.space) return;
  for (const pid_t pid : watchdog_.tree().seen()) ::kill(pid, SIGKILL);
}

// Reads only a part at a time while the cell runs, so that a cell that writes without end does not
// keep the worker from its other cells.
void RunningCell::Drain() {
  constexpr int kReadsAtOnce = 16;
  char buffer[65536];
  for (int i = 0; process_.events.valid() && (reaped_ || i < kReadsAtOnce); ++i) {
    const ssize_t n = ::read(process_.events.get(), buffer, sizeof buffer);
    if (n > 0) {
      log_.Feed({buffer, static_cast<size_t>(n)});
      if (log_.overrun().empty()) continue;
      process_.events.Close();
      return End(StopCause::kEvents, log_.overrun());
    }
    if (n == 0) process_.events.Close();  // the cell closed its end; it may still run
    if (n == 0 || errno != EINTR) return;
  }
}

Json RunningCell::Observation() const {
  Json observation = log_.Observation();
  observation["ending"] = EndingOf(exit_, log_);
  observation["usage"] = Usage();
  return observation;
}

Json RunningCell::Usage() const {
  return {{"wall_s", wall_s_},
          {"user_s", Seconds(usage_.ru_utime)},
          {"system_s", Seconds(usage_.ru_stime)},
          {"max_rss_mib", usage_.ru_maxrss / 1024}};
}

Json RunningCell::Process() const {
  const int status = exit_.wait_status;
  Json ending = WIFSIGNALED(status) ? Json{{"signal", WTERMSIG(status)}}
                                    : Json{{"code", WEXITSTATUS(status)}};
  if (exit_.stop != StopCause::kNone) ending["stopped"] = exit_.stop_message;
  return {{"libraries", watchdog_.Libraries()}, {"usage", Usage()}, {"ending", std::move(ending)}};
}

}  // namespace bkm
