// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_REFERENCES_H_
#define HARNESS_RUNNER_REFERENCES_H_

#include <deque>
#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "harness/base/subprocess.h"
#include "harness/model/probe.h"
#include "harness/runner/installation.h"
#include "harness/runner/run_directory.h"

namespace bkm {

// Gets goldens and floors into the run directory: from the cache, from golden/numeric, or by
// running reference_worker beside the cells, one at a time.
class References {
 public:
  References(const Installation& installation, std::filesystem::path cache, const RunDirectory& run)
      : installation_(installation), cache_(std::move(cache)), run_(run) {}
  ~References();

  // Asks for golden and floor of `probe` in `precision`; the probe's own files are copied into the
  // run directory. What is there already costs nothing.
  absl::Status Want(const Probe& probe, const std::filesystem::path& probe_folder,
                    const std::string& precision);

  // Starts and collects work. `may_start`: a slot is free. Returns how many are running (0 or 1).
  int Advance(bool may_start);
  bool busy() const { return process_.has_value() || !jobs_.empty(); }
  // What went wrong with a reference, for people; empty when nothing did.
  const std::string& failure() const { return failure_; }

 private:
  struct Job {
    Command command;
    std::string what;
    std::filesystem::path made;    // by the command, in the cache
    std::filesystem::path wanted;  // in the run directory
    std::filesystem::path log;
  };

  void Finish(int status);

  const Installation& installation_;
  std::filesystem::path cache_;
  const RunDirectory& run_;
  std::string torch_;            // version of the worker's LibTorch; empty: not asked yet
  std::set<std::string> asked_;  // file names
  std::deque<Job> jobs_;         // the first is running when process_ is set
  std::optional<PipedProcess> process_;
  std::string failure_;
};

// The names of a probe's files in the run directory. A floor is of the machine that measured it,
// and stays with its run.
std::string GoldenFile(const Probe& probe);
std::string FloorFile(const Probe& probe, const std::string& precision);
std::string ProbeKey(const Probe& probe);

}  // namespace bkm

#endif  // HARNESS_RUNNER_REFERENCES_H_
