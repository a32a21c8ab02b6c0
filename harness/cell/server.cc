// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iostream>
#include <utility>

#include "harness/cell/orphans.h"
#include "harness/cell/private_descriptor.h"

namespace bkm {
namespace {

using Clock = std::chrono::steady_clock;

// SIGTERM and SIGINT as a descriptor, so that the loop waits in one place.
Descriptor TakeSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return ToPrivate(Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)));
}

}  // namespace

Server::Server(ServerOptions options)
    : options_(std::move(options)), signals_(TakeSignals()), open_(options_.in.valid()) {
  ::signal(SIGPIPE, SIG_IGN);
  if (!options_.setting.sandbox.pid) AdoptOrphans();
}

void Server::Run() {
  while (open_ || HasWork()) {
    StartCells();
    Wait();
    Tend();
  }
}

void Server::StartCells() {
  while (running_.size() < options_.jobs && !queue_.empty()) {
    CellRequest request = std::move(queue_.front());
    queue_.pop_front();
    const std::string cell = request.cell;
    absl::StatusOr<std::unique_ptr<RunningCell>> started =
        RunningCell::Start(std::move(request), options_.setting);
    if (!started.ok()) {
      FinishUnstarted(cell, "fork-failed", started.status().message());
      continue;
    }
    running_.push_back(*std::move(started));
    if (!options_.only_finished)
      Reply({{"type", "started"}, {"cell", cell}, {"pid", running_.back()->pid()}});
  }
}

// Sleeps until there is work, then takes requests and signals.
void Server::Wait() {
  if (!open_ && !HasWork()) return;
  std::vector<pollfd> fds = {{signals_.get(), POLLIN, 0},
                             {open_ ? options_.in.get() : -1, POLLIN, 0}};
  Clock::time_point next = Clock::time_point::max();
  for (const auto& cell : running_) {
    cell->AddPollFds(fds);
    next = std::min(next, cell->NextCheck());
  }
  int wait_ms = -1;
  if (next != Clock::time_point::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
    wait_ms = static_cast<int>(std::max<int64_t>(0, left));
  }
  if (::poll(fds.data(), fds.size(), wait_ms) <= 0) return;
  if (fds[0].revents) {
    open_ = false;
    CancelAll();
  }
  if (open_ && fds[1].revents) ReadRequests();
}

void Server::ReadRequests() {
  char buffer[65536];
  const ssize_t n = ::read(options_.in.get(), buffer, sizeof buffer);
  if (n < 0 && errno == EINTR) return;
  if (n <= 0) {
    open_ = false;
    CancelAll();
    return;
  }
  half_line_.append(buffer, static_cast<size_t>(n));
  size_t newline = 0;
  while ((newline = half_line_.find('\n')) != std::string::npos) {
    const std::string line = half_line_.substr(0, newline);
    half_line_.erase(0, newline + 1);
    Take(line);
  }
}

void Server::Take(absl::string_view line) {
  const absl::StatusOr<Json> json = ParseJson(line, "request");
  if (!json.ok() || !json->is_object()) {
    std::cerr << "cell_worker: ignored a line that is not a JSON object\n";
    return;
  }
  const Json type = json->value("type", Json());
  const Json cell = json->value("cell", Json());
  if (!cell.is_string()) {
    std::cerr << "cell_worker: ignored a request without a cell\n";
  } else if (type == "run") {
    TakeRun(*json);
  } else if (type == "cancel") {
    Cancel(cell.get<std::string>());
  } else {
    std::cerr << "cell_worker: ignored a request of type " << type << "\n";
  }
}

void Server::TakeRun(const Json& json) {
  absl::StatusOr<CellRequest> request = ParseCellRequest(json);
  if (request.ok()) {
    if (!options_.kernels.empty()) request->all["kernels"] = options_.kernels;
    queue_.push_back(*std::move(request));
  } else {
    FinishUnstarted(json["cell"].get<std::string>(), "fork-failed", request.status().message());
  }
}

void Server::Cancel(const std::string& cell) {
  for (const auto& running : running_) {
    if (running->cell() == cell) running->End(StopCause::kCancelled, "");
  }
  const auto waiting = std::find_if(queue_.begin(), queue_.end(),
                                    [&](const CellRequest& r) { return r.cell == cell; });
  if (waiting == queue_.end()) return;
  queue_.erase(waiting);
  FinishUnstarted(cell, "cancelled", "");
}

void Server::CancelAll() {
  for (const auto& running : running_) running->End(StopCause::kCancelled, "");
  for (const CellRequest& request : std::exchange(queue_, {}))
    FinishUnstarted(request.cell, "cancelled", "");
}

void Server::Tend() {
  for (auto it = running_.begin(); it != running_.end();) {
    if (!(*it)->Tend()) {
      ++it;
      continue;
    }
    Finish((*it)->cell(), (*it)->Observation());
    it = running_.erase(it);
    // Orphans may belong to any cell, so they are killed only while no cell is running.
    if (running_.empty() && !options_.setting.sandbox.pid) KillOrphans();
  }
}

void Server::Finish(const std::string& cell, Json observation) {
  observation["versions"] = options_.versions;
  Reply({{"type", "finished"}, {"cell", cell}, {"observation", std::move(observation)}});
}

void Server::FinishUnstarted(const std::string& cell, absl::string_view kind,
                             absl::string_view message) {
  Json ending = {{"kind", std::string(kind)}};
  if (!message.empty()) ending["message"] = std::string(message);
  Finish(cell, {{"schema", 1}, {"stages", Json::array()}, {"ending", std::move(ending)}});
}

void Server::Reply(const Json& json) {
  if (WriteAll(options_.out, ToLine(json) + "\n")) return;
  open_ = false;  // nobody reads the replies any more
  queue_.clear();
  for (const auto& running : running_) running->End(StopCause::kCancelled, "");
}

}  // namespace bkm
