// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_SUPERVISOR_H_
#define HARNESS_CELL_SUPERVISOR_H_

#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/descriptor.h"
#include "harness/base/json.h"
#include "harness/cell/cell_order.h"
#include "harness/cell/cell_users.h"
#include "harness/cell/channel.h"
#include "harness/cell/control_groups.h"
#include "harness/cell/subject_views.h"
#include "harness/model/ending.h"
#include "harness/model/sandbox_level.h"

namespace bkm {

struct SupervisorOptions {
  SandboxLevel level = SandboxLevel::kFull;
  std::filesystem::path python;              // the environment's interpreter
  std::filesystem::path python_code;         // the folder that holds bkm_cell
  std::vector<std::string> preload;          // modules
  std::filesystem::path kernels;             // empty: none
  std::filesystem::path bytecode;            // empty: compiled files lie beside the sources
  std::vector<std::filesystem::path> reads;  // what cells may read beside the environment
  bool alone = false;                        // `python` itself becomes the worker
  int jobs = 1;
  Descriptor in;               // requests; invalid: only those given to Take
  int out = 1;                 // replies
  bool only_finished = false;  // no "ready" and "started" lines
};

// The part of a cell worker that no subject reaches: it runs no Python, and sees the machine as it
// is. It starts the worker in its sandbox, prepares each cell's folders and mounts, and passes
// requests and replies on. It believes nothing that the worker says about another cell.
class Supervisor {
 public:
  Supervisor(SupervisorOptions options, std::unique_ptr<SubjectViews> trees);
  ~Supervisor();

  // Starts the worker. Call it while the process has one thread.
  absl::Status Start();
  // Handles one line of input.
  void Take(absl::string_view line);
  // Passes requests and replies on until the worker has ended. Returns its exit status.
  int Run();

 private:
  struct Waiting {
    std::string cell;
    Json request;
    bool killed = false;  // somebody unknown has killed it once already
  };
  struct Running {
    int slot = 0;
    Waiting order;
    std::optional<CellGroups> groups;
    int64_t machine_kills = 0;  // MachineOutOfMemoryKills() at its start
  };

  absl::Status StartWorker();
  absl::Status StartInSandbox(int channel, int log);
  void StartCells();
  absl::Status SendOrder(const Waiting& waiting, int slot);
  absl::StatusOr<std::vector<std::filesystem::path>> Attach(const CellRequest& request,
                                                            CellOrder& order);
  void ReadRequests();
  bool ReadReplies();  // false at the end
  void ReadLog();
  void HandleReply(Packet packet);
  void Cancel(const std::string& cell);
  void EndInput();
  void FinishUnstarted(const std::string& cell, EndingKind why, absl::string_view message);
  void Finish(const std::string& cell, Json line);
  bool ExplainEnding(const Running& running, const std::string& overrun, Json& ending) const;
  void Compile(const Json& sources);
  void Reply(const Json& json);
  int FreeSlot() const;
  bool IsFull() const { return options_.level == SandboxLevel::kFull; }

  SupervisorOptions options_;
  std::unique_ptr<SubjectViews> trees_;
  CellUsers users_;
  Descriptor signals_;
  Descriptor log_;  // the worker's stdout and stderr
  int64_t logged_ = 0;
  Channel channel_;
  pid_t worker_ = -1;
  std::string settings_;  // the first message
  bool ready_ = false;
  bool open_ = true;       // more requests may come
  bool told_end_ = false;  // the worker knows that no more requests come
  std::string line_;
  bool too_long_ = false;
  std::deque<Waiting> waiting_;
  std::map<std::string, Running> running_;
  std::vector<std::filesystem::path> shown_;  // to the worker and its cells, beside the system
  pid_t compiler_ = -1;                       // runs beside the cells
  std::vector<GroupParent> groups_;
  Json versions_ = Json::object();
};

}  // namespace bkm

#endif  // HARNESS_CELL_SUPERVISOR_H_
