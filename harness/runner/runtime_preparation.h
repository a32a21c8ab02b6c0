// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_RUNTIME_PREPARATION_H_
#define HARNESS_RUNNER_RUNTIME_PREPARATION_H_

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "harness/base/clock.h"
#include "harness/runner/job_pool.h"
#include "harness/runner/observer.h"
#include "harness/runner/runtime_provider.h"

namespace bkm {

// How many run at once. Resolving waits for the registry. Of two environments one is installed
// while the other is compiled (EnvironmentCreator).
struct RuntimeLimits {
  int resolutions = 8;
  int environments = 2;
};

// Makes the locks and environments of many cells in the background, several at once, and reports
// the progress. What one of them comes to does not depend on the others. Used from one thread, on
// which the observer is called.
class RuntimePreparation {
 public:
  RuntimePreparation(RuntimeProvider& provider, RunObserver& observer, const Clock& clock,
                     RuntimeLimits limits);

  // Begins to resolve a request, and returns the key of its resolution. Equal requests have equal
  // keys and are resolved once; one that failed is resolved again. The message of a NoSolution
  // names the subjects of one of the requests; NoSolutionOf makes that of another.
  std::string Resolve(const RuntimeRequest& request);
  // Begins to create the environment of a lock, if there is none.
  void CreateEnvironment(const std::shared_ptr<const RuntimeLock>& lock);

  // What is known by now; null if that is nothing. Cancelled: it was never started.
  const Resolution* resolution(const std::string& key) const;
  const absl::StatusOr<std::filesystem::path>* environment(const std::string& lock_key) const;

  // Collects what has ended; if nothing has, waits up to `wait` for it. Returns whether anything
  // has.
  bool Advance(absl::Duration wait);
  // Whether anything is still to be resolved or created.
  bool resolving() const { return !IsDone(progress_[kResolutions]); }
  bool busy() const { return resolving() || !IsDone(progress_[kEnvironments]); }
  // Starts nothing further, and waits for what runs.
  void Finish();

 private:
  enum Kind : size_t { kResolutions, kEnvironments };
  struct Progress {
    int added = 0;
    int ended = 0;
    int announced = 0;
    absl::Duration start = {};  // by clock_
  };
  static bool IsDone(const Progress& progress) { return progress.added == progress.ended; }
  void Add(Kind kind, std::function<void()> run, std::function<std::string()> ended);
  // Says how much there is to do, once it is known.
  void Announce(Kind kind);
  // Says which runtimes share an environment, once all that were asked for are resolved.
  void AnnounceShared();

  RuntimeProvider& provider_;
  RunObserver& observer_;
  const Clock& clock_;
  const RuntimeLimits limits_;
  // Absent values are still being made.
  std::map<std::string, std::optional<Resolution>> resolutions_;
  std::map<std::string, std::optional<absl::StatusOr<std::filesystem::path>>> environments_;
  std::array<Progress, 2> progress_;
  size_t shared_ = 0;  // of resolutions_, how many were there when AnnounceShared spoke
  JobPool pool_;
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_RUNTIME_PREPARATION_H_
