// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_SERVER_H_
#define HARNESS_CELL_SERVER_H_

#include <deque>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "harness/base/descriptor.h"
#include "harness/base/json.h"
#include "harness/cell/cell_process.h"
#include "harness/cell/channel.h"
#include "harness/cell/running_cell.h"

struct pollfd;

namespace bkm {

struct ServerOptions {
  size_t jobs = 1;  // cells in flight
  Json versions = Json::object();
  CellSetting setting;
};

// The worker's loop: one thread that takes orders from the supervisor, forks cells and replies. At
// the end of the orders, on SIGTERM or SIGINT, or if nobody reads the replies, it cancels the
// remaining cells and returns.
class Server {
 public:
  // `orders`: what came with the settings already.
  Server(ServerOptions options, Channel channel, std::vector<Packet> orders);

  void Run();

 private:
  bool HasWork() const { return !queue_.empty() || !running_.empty(); }
  void StartCells();
  void Wait();
  void Take(Packet packet);
  void TakeRun(const Json& json, std::vector<Descriptor> descriptors);
  void ReadOrders();
  void Cancel(const std::string& cell);
  void CancelAll();
  void Tend();
  void Finish(const std::string& cell, Json observation, Json process = nullptr);
  void FinishUnstarted(const std::string& cell, absl::string_view kind, absl::string_view message);
  void Reply(const Json& json, const std::vector<int>& descriptors = {});

  ServerOptions options_;
  Descriptor signals_;
  Channel channel_;
  bool open_ = true;  // more orders may come
  std::deque<CellOrder> queue_;
  std::list<std::unique_ptr<RunningCell>> running_;
};

}  // namespace bkm

#endif  // HARNESS_CELL_SERVER_H_
