// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RAY_RAY_EXECUTOR_H_
#define HARNESS_RAY_RAY_EXECUTOR_H_

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "harness/base/clock.h"
#include "harness/bundle/cell_packer.h"
#include "harness/bundle/part_file.h"
#include "harness/ray/dispatch.h"
#include "harness/ray/driver_process.h"
#include "harness/ray/resources.h"
#include "harness/runner/executor.h"

namespace bkm {

struct RayExecutorOptions {
  RayDriver driver;
  DispatchOptions dispatch;
  RayResources resources;  // of a cell; CPU and memory that are missing follow from the cell
  Json machine;            // this machine, as a node describes itself
  int interrupt_fd = -1;   // readable once the user has interrupted
  std::function<void(const std::string&)> report;
};

// Runs cells on the nodes of a Ray cluster. A Python program, the driver, speaks to Ray; which cell
// runs where, and what happens when something is lost, is decided here (Dispatch).
class RayExecutor : public CellExecutor {
 public:
  // Starts the driver and waits until it knows the nodes. An error: Ray cannot be started or
  // joined. `scratch` is removed with the executor.
  static absl::StatusOr<std::unique_ptr<RayExecutor>> Create(RayExecutorOptions options,
                                                             std::filesystem::path scratch);
  ~RayExecutor() override;

  int running() const override;
  int slots() const override;
  void Start(const CellTask& task) override;
  WaitResult WaitAny(std::chrono::milliseconds deadline) override;
  // Idle workers end with the executor: they take no CPU, and another run may need them.
  void Release(const std::string& /*worker_key*/) override {}
  void CancelAll() override;
  std::vector<UnequalResults> TakeUnequal() override { return std::exchange(unequal_, {}); }
  Json machines() const override { return machines_; }

 private:
  // The first result of a cell of which another may come.
  struct First {
    std::filesystem::path folder;
    Json observation;
  };

  RayExecutor(RayExecutorOptions options, std::filesystem::path scratch, PartFile parts);

  absl::StatusOr<RayCell> Pack(const CellTask& task);
  // Waits for the driver at most so long, and takes what it says.
  void Serve(std::chrono::milliseconds wait);
  void RestartDriver();
  void Collect();
  void Finish(RayResult result);
  void CompareLate(const RayResult& result);
  void NoteMachine(const RayResult& result, const std::filesystem::path& folder);
  bool interrupted() const;

  RayExecutorOptions options_;
  const std::filesystem::path scratch_;
  const RealClock clock_;
  PartFile parts_;  // of the cells so far
  CellPacker packer_;
  DriverProcess driver_;
  Dispatch dispatch_;
  std::map<std::string, std::shared_ptr<const RuntimeLock>> locks_;  // by key
  std::map<int64_t, First> firsts_;
  std::deque<CellFinished> finished_;
  std::vector<UnequalResults> unequal_;
  Json machines_ = Json::array();
  int restarts_ = 0;
};

}  // namespace bkm

#endif  // HARNESS_RAY_RAY_EXECUTOR_H_
