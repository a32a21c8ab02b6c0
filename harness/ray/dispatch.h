// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RAY_DISPATCH_H_
#define HARNESS_RAY_DISPATCH_H_

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "harness/base/clock.h"
#include "harness/base/json.h"
#include "harness/model/cell_facts.h"
#include "harness/ray/ledger.h"
#include "harness/ray/resources.h"
#include "harness/ray/result_files.h"
#include "harness/ray/slots.h"

namespace bkm {

// A cell as it is sent to a node (README.md).
struct RayCell {
  std::string id;
  std::string runtime;           // its lock: the key of the workers that can run it
  Json run;                      // the message "run", without its lease
  RayResources resources;        // what it takes of a node
  absl::Duration timeout;        // of the cell itself
  std::filesystem::path folder;  // where its evidence belongs
};

// How a cell ended.
struct RayResult {
  std::string id;
  std::string runtime;
  std::filesystem::path folder;
  int64_t cell = 0;   // its number in the ledger
  bool late = false;  // another result of the cell counts
  // Of a cell that ran: what came back. Otherwise `lost` says why there is nothing.
  std::string lost;
  std::optional<CellFacts> seen;
  Json observed;
  ObservedMachine facts;  // MachineFacts of the node
  Json machine;           // the node's WorkMachine
  ResultFiles files;
};

struct DispatchOptions {
  Ledger::Settings ledger;
  std::vector<std::string> server;                   // the program that a node starts
  std::map<std::string, std::string> environment;    // what it gets beside the node's own
  Json hello;                                        // what it is told first
  std::map<std::string, std::string> labels;         // a node must have them
  bool may_grow = true;                              // the cluster may get further nodes
  absl::Duration start_limit = absl::Minutes(5);     // from asking for a worker to its first word
  absl::Duration grace = absl::Minutes(2);           // a cell's time beyond its own limit
  absl::Duration idle_limit = absl::Seconds(20);     // then an unused reservation is given back
  absl::Duration waiting_limit = absl::Seconds(20);  // then it is said that cells wait
};

// Decides which cell runs where, and what happens when a worker, a node or the driver is lost. It
// speaks to the Ray driver in messages (README.md) and does no input or output of its own.
//
// A cell waits until resources are reserved on a node (a slot). It is then sent to the node's
// worker for its runtime, which is started for the first such cell.
class Dispatch {
 public:
  using Send = std::function<void(const Json&)>;  // to the driver
  using ReadPart = std::function<absl::StatusOr<std::string>(const std::string&)>;
  using Report = std::function<void(const std::string&)>;  // for the user

  Dispatch(DispatchOptions options, const Clock& clock, Send send, ReadPart read_part,
           Report report)
      : options_(std::move(options)),
        clock_(clock),
        send_(std::move(send)),
        read_part_(std::move(read_part)),
        report_(std::move(report)),
        ledger_(options_.ledger),
        slots_(send_, options_.labels) {}

  void Start(RayCell cell);
  // A line of the driver. What is not a message is ignored.
  void OnLine(const std::string& line);
  // Everything that Ray did for us is gone; a new driver takes messages from now on.
  void OnDriverLost(const std::string& why);
  // Ends every cell that has not ended.
  void EndAll(const std::string& why);
  // Call it a few times a second.
  void Tick();

  std::optional<RayResult> TakeResult();
  // Cells whose result was not taken, which may have ended while they were started.
  int running() const;
  // Whether a late result of the cell may come.
  bool IsOpen(int64_t cell) const { return ledger_.IsOpen(cell); }
  // The nodes of the cluster; none until the driver has told.
  const std::map<std::string, RayResources>& nodes() const { return nodes_; }
  // What the driver said before it ended by itself; empty: nothing.
  const std::string& fatal() const { return fatal_; }

 private:
  struct Cell {
    RayCell what;
    absl::Duration since;  // it waits
    NodeReasons refused;   // why it cannot run there
  };
  // A program on a node that runs the cells of one runtime.
  struct Worker {
    std::string node;
    std::string runtime;
    absl::Duration asked;
    bool heard = false;   // it runs
    bool silent = false;  // a lease ran out: it gets no cells until it is heard again
    Json machine;
  };

  void OnMessage(const Json& message);
  void OnNodes(const Json& message);
  void OnGone(int64_t number, const std::string& kind, const std::string& why);
  void OnWorkerLine(int64_t number, const std::string& line);
  void OnWorkerMessage(int64_t number, const Json& message);
  void OnFinished(int64_t number, const Json& message);
  void OnNeed(int64_t number, const Json& message);
  void OnRefused(int64_t lease, const std::string& why);

  // Gives free slots to waiting cells, and asks for further slots.
  void Assign();
  bool IsHopeless(int64_t number);
  Slots::Wish WishOf(const Cell& cell) const;
  void SendCell(int64_t number, int64_t slot);
  int64_t FindWorker(const std::string& node, const std::string& runtime);
  void SendLine(int64_t worker, const Json& line);
  void Again(const std::vector<Ledger::Over>& over, const std::string& why, bool release);
  void Lose(int64_t number, const std::string& why);
  std::string NodeName(const std::string& node) const { return node.substr(0, 8); }

  const DispatchOptions options_;
  const Clock& clock_;
  const Send send_;
  const ReadPart read_part_;
  const Report report_;
  Ledger ledger_;
  Slots slots_;
  std::map<int64_t, Cell> cells_;  // that have not ended, by their number in the ledger
  std::deque<int64_t> waiting_;    // of these
  std::map<int64_t, Worker> workers_;
  std::map<int64_t, std::pair<std::string, std::filesystem::path>> ended_;  // may get late results
  std::map<std::string, RayResources> nodes_;
  std::map<std::string, NodeReasons> refused_;  // by runtime
  std::deque<RayResult> results_;
  std::string fatal_;
  int64_t last_worker_ = 0;
  absl::Duration told_waiting_ = -absl::InfiniteDuration();
};

}  // namespace bkm

#endif  // HARNESS_RAY_DISPATCH_H_
