// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_LOCAL_EXECUTOR_H_
#define HARNESS_RUNNER_LOCAL_EXECUTOR_H_

#include <deque>
#include <filesystem>
#include <functional>
#include <list>
#include <set>
#include <string>

#include "harness/base/subprocess.h"
#include "harness/model/sandbox_level.h"
#include "harness/runner/executor.h"

namespace bkm {

struct LocalExecutorOptions {
  std::filesystem::path cell_worker;
  std::filesystem::path python_code;
  std::filesystem::path kernels;  // empty: none
  std::filesystem::path preload;  // file that lists modules to preload; empty: none
  SandboxLevel sandbox = SandboxLevel::kFull;
  int slots = 1;       // cells a worker may have in flight
  bool fresh = false;  // each cell gets its own process
  // How many released workers stay, the most recently used ones, for later cells of the same
  // runtime. Loading a runtime takes seconds; an idle worker takes memory.
  int idle = 0;
  int interrupt_fd = -1;  // readable once the user has interrupted
  // The file for a worker's stderr.
  std::function<std::filesystem::path(const std::string& key)> log_path;
};

// Runs cells in cell_worker processes on this machine, one per runtime.
class LocalExecutor : public CellExecutor {
 public:
  explicit LocalExecutor(LocalExecutorOptions options) : options_(std::move(options)) {}
  ~LocalExecutor() override;

  void Load(const WorkerSetup& setup) override;
  int running() const override;
  void Start(const CellTask& task) override;
  WaitResult WaitAny(std::chrono::milliseconds deadline) override;
  void Release(const std::string& worker_key) override;
  void CancelAll() override;
  double preload_s() const override { return preload_s_; }

 private:
  struct Worker {
    std::string key;
    PipedProcess process;
    std::filesystem::path log;
    std::string buffer;           // bytes of an unfinished line
    std::string fatal;            // the worker's last message before it exited
    std::set<std::string> cells;  // in flight
    bool used = false;            // a cell was started in it
    bool released = false;
    bool closed = false;  // its input is closed, so it will exit
  };

  // The worker that takes cells of that key, or the end.
  std::list<Worker>::iterator FindWorker(const std::string& key);
  // Appends the worker to workers_.
  absl::Status StartWorker(const WorkerSetup& setup, const std::string& key);
  void Read(Worker& worker);
  void HandleLine(Worker& worker, const std::string& line);
  // Called when the worker's output has ended: its cells are lost.
  void Reap(Worker& worker);
  void CloseInput(Worker& worker);
  // Closes the released workers without cells that are more than `idle` allows.
  void CloseIdle();
  void Lose(const std::string& id, const std::string& message);

  LocalExecutorOptions options_;
  std::list<Worker> workers_;
  std::deque<CellFinished> finished_;
  double preload_s_ = 0;
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_LOCAL_EXECUTOR_H_
