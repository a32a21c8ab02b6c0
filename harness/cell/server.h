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
  Descriptor in;               // requests; invalid: only those given to Take
  int out = 1;                 // replies
  bool only_finished = false;  // no "started" lines
  std::string kernels;         // added to each request; empty: none
  Json versions = Json::object();
  CellSetting setting;
};

// The worker's loop: one thread that reads requests, forks cells and writes replies. At the end of
// the input, on SIGTERM or SIGINT, or if nobody reads the replies, it cancels the remaining cells
// and returns.
class Server {
 public:
  explicit Server(ServerOptions options);

  // Handles one line of input.
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
