// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_WORKER_SETTINGS_H_
#define HARNESS_CELL_WORKER_SETTINGS_H_

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/cell/sandbox.h"

namespace bkm {

// What a worker needs to know at its start; the supervisor sends it as the first message.
struct WorkerSettings {
  std::filesystem::path python;       // the environment's interpreter
  std::filesystem::path python_code;  // the folder that holds bkm_cell
  std::vector<std::string> preload;   // modules
  std::filesystem::path bytecode;     // empty: compiled files lie beside the sources
  int64_t jobs = 1;                   // cells in flight
  Sandbox sandbox;
  uid_t trial_user = 0;  // of the first cell, inside
};

Json ToJson(const WorkerSettings& settings);
absl::StatusOr<WorkerSettings> WorkerSettingsFrom(const Json& json);

// The worker's end of its channel to the supervisor.
inline constexpr int kWorkerChannel = 3;
// The library that makes an interpreter the worker, where it embeds none.
inline constexpr int kWorkerLibrary = 4;

}  // namespace bkm

#endif  // HARNESS_CELL_WORKER_SETTINGS_H_
