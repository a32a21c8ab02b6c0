// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_REFERENCES_H_
#define HARNESS_RUNNER_REFERENCES_H_

#include <algorithm>
#include <deque>
#include <filesystem>
#include <functional>
#include <list>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "harness/base/subprocess.h"
#include "harness/model/probe.h"
#include "harness/runner/installation.h"
#include "harness/runner/libtorch.h"
#include "harness/runner/run_directory.h"

namespace bkm {

// Puts goldens and floors into the run directory: from the cache, from golden/numeric, or computed
// by reference_worker while cells run, each in one process on one thread. An installed bkm fetches
// LibTorch when the first one must be computed. Until then it uses the floors that came with it,
// which another machine measured.
class References {
 public:
  using Note = std::function<void(const std::string&)>;
  References(const Installation& installation, std::filesystem::path cache, const RunDirectory& run,
             Note note)
      : installation_(installation),
        cache_(std::move(cache)),
        run_(run),
        note_(std::move(note)),
        libtorch_version_(LibTorchToFetch(installation)) {}
  ~References();

  // Requests the golden and the floor of `probe` in `precision`, and copies the probe's own files
  // into the run directory. Files that exist already cost nothing.
  absl::Status Want(const Probe& probe, const std::filesystem::path& probe_folder,
                    const std::string& precision);

  // Collects results and starts work while fewer than `slots` processes run, at most one per core.
  // Returns the number of running processes. A floor waits for its golden.
  int Advance(int slots);
  bool busy() const { return !running_.empty() || !jobs_.empty(); }
  // Whether the golden of `probe`, or a floor of it with its layout, is still to be computed.
  bool IsMaking(const Probe& probe) const;
  // Sentences about damaged files, which were set aside and are made again.
  const std::vector<std::string>& damaged() const { return damaged_; }
  // Why a reference could not be computed, for people; empty if none failed.
  const std::string& failure() const { return failure_; }

 private:
  struct Job {
    std::string serves;  // ProbeKey, or FloorKind
    std::string needs;   // the job that must end before; empty: none
    Command command;
    std::string what;
    std::filesystem::path made;    // the command's output, in the cache
    std::filesystem::path wanted;  // in the run directory
    std::filesystem::path log;
    int killed = 0;  // times
  };

  struct Running {
    Job job;
    PipedProcess process;
  };

  void Finish(Job job, int status);
  // Ends a job without its file, and those that need it.
  void GiveUp(const Job& job, const std::string& why);
  // The first job that waits for no other one.
  std::deque<Job>::iterator NextJob();
  // Whether a job that `serves` this waits or runs.
  bool IsMaking(const std::string& serves) const;
  absl::Status CopyProbe(const std::filesystem::path& from, const std::filesystem::path& to);
  // Whether reference_worker can run; an installed bkm fetches what it needs.
  bool HasWorker();
  // Whether the file exists and is what was written. A damaged one is set aside.
  bool IsSound(const std::filesystem::path& path);

  const Installation& installation_;
  std::filesystem::path cache_;
  const RunDirectory& run_;
  const Note note_;
  const std::string libtorch_version_;  // empty: reference_worker finds its own
  std::filesystem::path libtorch_;      // folder of its libraries, once found
  std::string torch_;                   // version of the worker's LibTorch; empty: not known yet
  std::set<std::string> asked_;         // names of files and folders
  std::deque<Job> jobs_;                // that wait
  std::list<Running> running_;
  const int cores_ = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::string failure_;
  std::vector<std::string> damaged_;
};

// The names of a probe's files in the run directory. A floor depends on the machine that measured
// it, and stays with its run.
std::string GoldenFile(const Probe& probe);
std::string FloorFile(const Probe& probe, const std::string& precision);
std::string ProbeKey(const Probe& probe);

// OK if the golden or floor `file` of a run is there. FailedPrecondition if its worker could not
// compute it. Unavailable if the machine is to blame (the worker was killed, the disk was full,
// LibTorch could not be fetched): the same run computes it.
absl::Status LackOf(const std::filesystem::path& file);

}  // namespace bkm

#endif  // HARNESS_RUNNER_REFERENCES_H_
