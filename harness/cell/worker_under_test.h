// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_WORKER_UNDER_TEST_H_
#define HARNESS_CELL_WORKER_UNDER_TEST_H_

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "harness/base/descriptor.h"
#include "harness/base/json.h"

namespace bkm {

// A real cell_worker with the system's Python and testdata/fake_cell, for tests.
class WorkerUnderTest {
 public:
  // `python`: empty: the system's.
  explicit WorkerUnderTest(int jobs = 1, std::vector<std::string> more = {},
                           const std::string& python = "");
  ~WorkerUnderTest();

  const Json& ready() const { return ready_; }
  pid_t pid() const { return pid_; }
  bool Has(absl::string_view name) const;  // among ready's protections

  // A request in its own folder. `adapter` is the name of a function in fake_cell.
  Json Request(const std::string& adapter) const;
  void Send(const Json& message);
  // Sends it and waits for its Stable() observation.
  Json RunRequest(const Json& request);
  Json Run(const std::string& adapter) { return RunRequest(Request(adapter)); }
  // Waits for all open cells; their Stable() observations by cell.
  std::map<std::string, Json> WaitForAll();
  // The next message, null at the end.
  Json Read();
  // Closes the input and returns the wait status.
  int Finish();

  static std::filesystem::path Binary();
  static std::vector<std::string> Arguments(const std::string& command);
  // Whether the tests run on interpreters that are workers themselves ($BKM_TEST_ALONE).
  static bool IsAlone();
  // A folder per test, removed at the end.
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  pid_t pid_ = -1;
  Descriptor to_;
  Descriptor from_;
  std::string buffer_;
  int open_cells_ = 0;
  Json ready_;
};

// `observation` without times, memory and versions.
Json Stable(Json observation);

}  // namespace bkm

#endif  // HARNESS_CELL_WORKER_UNDER_TEST_H_
