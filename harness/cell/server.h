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
#include "harness/cell/running_cell.h"

struct pollfd;

namespace bkm {

struct ServerOptions {
  size_t jobs = 1;             // cells in flight
  Descriptor in;               // requests; invalid: only those given to Add
  int out = 1;                 // replies
  bool only_finished = false;  // no "started" lines
  std::string kernels;         // given to the adapters with each request; empty: none
  Json versions = Json::object();
  CellSetting setting;
};

// The worker's loop: one thread, requests in, forked cells, replies out. It ends when the requests
// have ended (cells that are still running are cancelled then), on SIGTERM or SIGINT, or when
// nobody reads the replies.
class Server {
 public:
  explicit Server(ServerOptions options);

  // As if the line had come in.
  void Take(absl::string_view line);
  void Run();

 private:
  bool HasWork() const { return !queue_.empty() || !running_.empty(); }
  void StartCells();
  void Wait();
  void ReadRequests();
  void TakeRun(const Json& json);
  void Cancel(const std::string& cell);
  void CancelAll();
  void Tend();
  void Finish(const std::string& cell, Json observation);
  void FinishUnstarted(const std::string& cell, absl::string_view kind, absl::string_view message);
  void Reply(const Json& json);

  ServerOptions options_;
  Descriptor signals_;
  std::string half_line_;
  bool open_;  // more requests may come
  std::deque<CellRequest> queue_;
  std::list<std::unique_ptr<RunningCell>> running_;
};

}  // namespace bkm

#endif  // HARNESS_CELL_SERVER_H_
