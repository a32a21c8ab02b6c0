// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/ray/driver_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Ray needs seconds to end what it started.
constexpr std::chrono::seconds kLongestWait(20);
// What was sent is forgotten when it is so much.
constexpr size_t kMuch = 1 << 20;

}  // namespace

DriverProcess::~DriverProcess() {
  if (ended()) return;
  process_.to_child.Close();
  const auto deadline = SteadyClock::now() + kLongestWait;
  while (!ended() && SteadyClock::now() < deadline) Lines(std::chrono::milliseconds(100), -1);
  if (!ended()) Reap();
}

absl::Status DriverProcess::Start() {
  RETURN_IF_ERROR(CreateDirectories(driver_.log.parent_path()));
  ASSIGN_OR_RETURN(process_, StartPiped(driver_.command, driver_.log));
  ::fcntl(process_.from_child.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(process_.to_child.get(), F_SETFL, O_NONBLOCK);
  unsent_.clear();
  sent_ = 0;
  buffer_.clear();
  return absl::OkStatus();
}

void DriverProcess::Write() {
  while (sent_ < unsent_.size()) {
    const ssize_t n =
        ::write(process_.to_child.get(), unsent_.data() + sent_, unsent_.size() - sent_);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;  // full, or the driver has ended, which reading tells
    sent_ += static_cast<size_t>(n);
  }
  if (sent_ == unsent_.size() || sent_ > kMuch) {
    unsent_.erase(0, sent_);
    sent_ = 0;
  }
}

void DriverProcess::Read(std::vector<std::string>& lines) {
  char bytes[65536];
  for (;;) {
    const ssize_t n = ::read(process_.from_child.get(), bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return Reap();
    size_t from = buffer_.size(), begin = 0;
    buffer_.append(bytes, static_cast<size_t>(n));
    for (size_t end; (end = buffer_.find('\n', from)) != std::string::npos; begin = from = end + 1)
      lines.push_back(buffer_.substr(begin, end - begin));
    buffer_.erase(0, begin);
  }
}

std::vector<std::string> DriverProcess::Lines(std::chrono::milliseconds wait, int interrupt_fd) {
  std::vector<std::string> lines;
  if (ended()) return lines;
  if (process_.to_child.valid()) Write();
  const bool full = sent_ < unsent_.size() && process_.to_child.valid();
  pollfd fds[] = {{process_.from_child.get(), POLLIN, 0},
                  {interrupt_fd, POLLIN, 0},  // a negative one is ignored
                  {full ? process_.to_child.get() : -1, POLLOUT, 0}};
  ::poll(fds, 3, static_cast<int>(wait.count()));
  if (fds[2].revents != 0) Write();
  if (fds[0].revents != 0) Read(lines);
  return lines;
}

void DriverProcess::Reap() {
  process_.to_child.Close();
  process_.from_child.Close();
  ::kill(-process_.pid, SIGKILL);
  while (::waitpid(process_.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::string DriverProcess::Why() const {
  const absl::StatusOr<std::string> log = ReadFile(driver_.log);
  std::string last;
  for (absl::string_view line : absl::StrSplit(log.value_or(""), '\n')) {
    if (!absl::StripAsciiWhitespace(line).empty()) last = std::string(line);
  }
  return absl::StrCat("the Ray driver ended", last.empty() ? "" : ": ", last);
}

}  // namespace bkm
