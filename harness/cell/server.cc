// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/server.h"

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <utility>

#include "harness/cell/orphans.h"
#include "harness/cell/private_descriptor.h"

namespace bkm {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Server::Server(ServerOptions options, Channel channel, std::vector<Packet> orders)
    : options_(std::move(options)),
      signals_(ToPrivate(TakeStopSignals())),
      channel_(std::move(channel)) {
  ::signal(SIGPIPE, SIG_IGN);
  if (!options_.setting.sandbox.HasNamespaces()) AdoptOrphans();
  for (Packet& order : orders) Take(std::move(order));
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
    CellOrder order = std::move(queue_.front());
    queue_.pop_front();
    const std::string cell = order.cell;
    absl::StatusOr<std::unique_ptr<RunningCell>> started =
        RunningCell::Start(std::move(order), options_.setting);
    if (!started.ok()) {
      FinishUnstarted(cell, "fork-failed", started.status().message());
      continue;
    }
    running_.push_back(*std::move(started));
    // The supervisor counts processes by other numbers: it gets a descriptor.
    Reply({{"type", "started"}, {"cell", cell}, {"pid", running_.back()->pid()}},
          {running_.back()->pidfd()});
  }
}

// Sleeps until there is work, then takes requests and signals.
void Server::Wait() {
  if (!open_ && !HasWork()) return;
  std::vector<pollfd> fds = {{signals_.get(), POLLIN, 0}, {open_ ? channel_.fd() : -1, POLLIN, 0}};
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
  if (open_ && fds[1].revents) ReadOrders();
}

void Server::ReadOrders() {
  std::vector<Packet> packets;
  const bool more = channel_.Receive(packets);
  for (Packet& packet : packets) Take(std::move(packet));
  if (more) return;
  open_ = false;
  CancelAll();
}

void Server::Take(Packet packet) {
  const Json json = Json::parse(packet.text, nullptr, /*allow_exceptions=*/false);
  const Json type = json.is_object() ? json.value("type", Json()) : Json();
  if (type == "run") {
    TakeRun(json, std::move(packet.descriptors));
  } else if (type == "cancel" && json.contains("cell") && json["cell"].is_string()) {
    Cancel(json["cell"].get<std::string>());
  } else {
    std::cerr << "cell_worker: ignored an order of type " << type << "\n";
  }
}

void Server::TakeRun(const Json& json, std::vector<Descriptor> descriptors) {
  absl::StatusOr<CellOrder> order = CellOrderFrom(json, std::move(descriptors));
  if (order.ok()) {
    queue_.push_back(*std::move(order));
  } else {
    FinishUnstarted(json.value("cell", std::string()), "fork-failed", order.status().message());
  }
}

void Server::Cancel(const std::string& cell) {
  for (const auto& running : running_) {
    if (running->cell() == cell) running->End(StopCause::kCancelled, "");
  }
  const auto waiting = std::find_if(queue_.begin(), queue_.end(),
                                    [&](const CellOrder& order) { return order.cell == cell; });
  if (waiting == queue_.end()) return;
  queue_.erase(waiting);
  FinishUnstarted(cell, "cancelled", "");
}

void Server::CancelAll() {
  for (const auto& running : running_) running->End(StopCause::kCancelled, "");
  for (const CellOrder& order : std::exchange(queue_, {}))
    FinishUnstarted(order.cell, "cancelled", "");
}

void Server::Tend() {
  for (auto it = running_.begin(); it != running_.end();) {
    if (!(*it)->Tend()) {
      ++it;
      continue;
    }
    Finish((*it)->cell(), (*it)->Observation(), (*it)->Process());
    it = running_.erase(it);
    // Orphans may belong to any cell, so they are killed only while no cell is running.
    if (running_.empty() && !options_.setting.sandbox.HasNamespaces()) KillOrphans();
  }
}

void Server::Finish(const std::string& cell, Json observation, Json process) {
  observation["versions"] = options_.versions;
  Json line = {{"type", "finished"}, {"cell", cell}, {"observation", std::move(observation)}};
  if (!process.is_null()) line["process"] = std::move(process);
  Reply(line);
}

void Server::FinishUnstarted(const std::string& cell, absl::string_view kind,
                             absl::string_view message) {
  Reply({{"type", "unstarted"},
         {"cell", cell},
         {"kind", std::string(kind)},
         {"message", std::string(message)}});
}

void Server::Reply(const Json& json, const std::vector<int>& descriptors) {
  if (channel_.Send(ToLine(json), descriptors)) return;
  open_ = false;  // nobody reads the replies any more
  queue_.clear();
  for (const auto& running : running_) running->End(StopCause::kCancelled, "");
}

}  // namespace bkm
