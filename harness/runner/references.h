// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_REFERENCES_H_
#define HARNESS_RUNNER_REFERENCES_H_

#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "harness/base/subprocess.h"
#include "harness/model/probe.h"
#include "harness/runner/installation.h"
#include "harness/runner/libtorch.h"
#include "harness/runner/run_directory.h"

namespace bkm {

// Puts goldens and floors into the run directory: from the cache, from golden/numeric, or computed
// by reference_worker while cells run, one at a time. An installed bkm fetches LibTorch when the
// first one must be computed. Until then it uses the floors that came with it, which another
// machine measured.
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

  // Starts work if `may_start` (a slot is free), and collects results. Returns the number of
  // running processes: 0 or 1.
  int Advance(bool may_start);
  bool busy() const { return process_.has_value() || !jobs_.empty(); }
  // Whether a golden or floor of `probe` is still to be computed.
  bool IsMaking(const Probe& probe) const;
  // Sentences about damaged files, which were set aside and are made again.
  const std::vector<std::string>& damaged() const { return damaged_; }
  // Why a reference could not be computed, for people; empty if none failed.
  const std::string& failure() const { return failure_; }

 private:
  struct Job {
    std::string probe;  // its key
    Command command;
    std::string what;
    std::filesystem::path made;    // the command's output, in the cache
    std::filesystem::path wanted;  // in the run directory
    std::filesystem::path log;
    int killed = 0;  // times
  };

  void Finish(int status);
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
  std::deque<Job> jobs_;                // the first is running when process_ is set
  std::optional<PipedProcess> process_;
  std::string failure_;
  std::vector<std::string> damaged_;
};

// The names of a probe's files in the run directory. A floor depends on the machine that measured
// it, and stays with its run.
std::string GoldenFile(const Probe& probe);
std::string FloorFile(const Probe& probe, const std::string& precision);
std::string ProbeKey(const Probe& probe);

}  // namespace bkm

#endif  // HARNESS_RUNNER_REFERENCES_H_
