// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/running_cell.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <utility>

#include "harness/base/status_macros.h"

namespace bkm {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// Cuts a file that grew past the limit before the cell was stopped.
void Trim(const std::filesystem::path& file, int64_t limit_mib) {
  std::error_code error;
  const uintmax_t most = static_cast<uintmax_t>(limit_mib) << 20;
  if (std::filesystem::file_size(file, error) > most && !error)
    std::filesystem::resize_file(file, most, error);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunningCell>> RunningCell::Start(CellRequest request,
                                                                const CellSetting& setting) {
  ASSIGN_OR_RETURN(CellProcess process, StartCell(request, setting));
  ProcessTree tree(process.pid, process.space ? process.space->init_pid() : -1,
                   process.space && setting.sandbox.mount);
  Watchdog watchdog(request, std::move(tree), OwnResidentKib());
  return std::unique_ptr<RunningCell>(
      new RunningCell(std::move(request), std::move(process), std::move(watchdog)));
}

RunningCell::RunningCell(CellRequest request, CellProcess process, Watchdog watchdog)
    : request_(std::move(request)), process_(std::move(process)), watchdog_(std::move(watchdog)) {}

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
  if (exit_.stop == StopCause::kNone) {
    // A cell that exceeds its output limit just before its end is over the limit, too.
    const Overrun overrun = watchdog_.CheckOutput();
    exit_.stop = overrun.stop;
    exit_.stop_message = overrun.message;
  }
  if (request_.limits.output_mib > 0) {
    for (const char* name : {"stdout", "stderr"})
      Trim(request_.dir / name, request_.limits.output_mib);
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

void RunningCell::Drain() {
  char buffer[65536];
  while (process_.events.valid()) {
    const ssize_t n = ::read(process_.events.get(), buffer, sizeof buffer);
    if (n > 0) {
      log_.Feed({buffer, static_cast<size_t>(n)});
      continue;
    }
    if (n == 0) process_.events.Close();  // the cell closed its end; it may still run
    if (n == 0 || errno != EINTR) return;
  }
}

Json RunningCell::Observation() const {
  Json observation = log_.Observation();
  observation["ending"] = EndingOf(exit_, log_);
  observation["usage"] = {{"wall_s", wall_s_},
                          {"user_s", Seconds(usage_.ru_utime)},
                          {"system_s", Seconds(usage_.ru_stime)},
                          {"max_rss_mib", usage_.ru_maxrss / 1024}};
  return observation;
}

}  // namespace bkm
