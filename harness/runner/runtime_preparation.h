// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_RUNTIME_PREPARATION_H_
#define HARNESS_RUNNER_RUNTIME_PREPARATION_H_

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/clock.h"
#include "harness/runner/observer.h"
#include "harness/runner/runtime_provider.h"

namespace bkm {

// How many run at once. Resolving waits for the registry; creating downloads and links files.
struct RuntimeLimits {
  int resolutions = 8;
  int environments = 4;
};

// What requests came to: equal requests have equal keys.
struct Resolutions {
  std::vector<std::string> keys;  // in the order of the requests
  std::map<std::string, Resolution> by_key;
};

// Makes the locks and environments of many cells, several at once, and reports the progress.
// What one of them comes to does not depend on the others.
class RuntimePreparation {
 public:
  using Stop = std::function<bool()>;  // once true, nothing more is started

  RuntimePreparation(RuntimeProvider& provider, RunObserver& observer, const Clock& clock,
                     RuntimeLimits limits)
      : provider_(provider), observer_(observer), clock_(clock), limits_(limits) {}

  // Resolves equal requests once. Cancelled: not started. The message of a NoSolution names the
  // subjects of one of the requests; NoSolutionOf makes that of another.
  Resolutions Resolve(const std::vector<RuntimeRequest>& requests, const Stop& stop);

  // The python of each lock's environment, by the lock's key. Cancelled: not started.
  std::map<std::string, absl::StatusOr<std::filesystem::path>> CreateEnvironments(
      const std::vector<const RuntimeLock*>& locks, const Stop& stop);

 private:
  struct Work;
  // Runs the jobs and reports each as it ends.
  void Run(const Work& work, const Stop& stop);

  RuntimeProvider& provider_;
  RunObserver& observer_;
  const Clock& clock_;
  const RuntimeLimits limits_;
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_RUNTIME_PREPARATION_H_
