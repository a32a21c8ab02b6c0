// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_RUN_DIRECTORY_H_
#define HARNESS_RUNNER_RUN_DIRECTORY_H_

#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "harness/base/json.h"
#include "harness/model/cell_facts.h"
#include "harness/model/cell_record.h"
#include "harness/runtime/runtime_lock.h"
#include "harness/store/file_lock.h"

namespace bkm {

// The folder of one run, which holds all its evidence. Defines every path in it.
//   .lock  run.json  table.md  locks/<hash>.json  probes/<key>/  references/<key>.safetensors|.json
//   workers/<lock>.stderr cells/<name>/{request,observation,verdict}.json stdout stderr tensors/
//   work/ rerun.sh manifest.sha256
class RunDirectory {
 public:
  explicit RunDirectory(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path run_json() const { return root_ / "run.json"; }
  std::filesystem::path table() const { return root_ / "table.md"; }
  std::filesystem::path probe(const std::string& key) const { return root_ / "probes" / key; }
  std::filesystem::path reference(const std::string& file) const {
    return root_ / "references" / file;
  }
  std::filesystem::path worker_log(const std::string& name) const {
    return root_ / "workers" / (name + ".stderr");
  }
  std::filesystem::path cell(const CellRecord& record) const { return root_ / record.dir; }

  // Makes a new folder for the cell, with its request and rerun.sh. Removes the files of an earlier
  // attempt.
  absl::Status PrepareCell(const CellRecord& record, const Json& request,
                           const std::string& launcher) const;
  // Writes the script that replays the cell of this run.
  absl::Status WriteRerun(const CellRecord& record, const std::string& launcher,
                          const std::filesystem::path& script) const;
  // Links the files of another run's cell into the prepared folder and writes their checksums. If
  // this fails, the folder has no observation, or one that VerifyCell refuses.
  absl::Status AdoptCell(const CellRecord& record, const std::filesystem::path& folder) const;
  // Writes the observation and the checksums of the cell's evidence. What is written survives a
  // power cut as a whole or not at all.
  absl::Status WriteObservation(const CellRecord& record, const CellFacts& facts) const;
  // Writes the checksums of the evidence that lies in the cell's folder.
  absl::Status SealCell(const CellRecord& record) const;
  // Whether the cell's evidence is what was written. OK for cells of older versions, which have no
  // checksums, if no file that the observation names is missing. DataLoss names the damaged file.
  absl::Status VerifyCell(const CellRecord& record) const;
  // Renames the cell's folder, so that the cell can be measured again. Returns the new path.
  absl::StatusOr<std::filesystem::path> SetCellAside(const CellRecord& record) const;
  // Absent if the cell has not been measured; an error if a field that anything reads is damaged.
  absl::StatusOr<std::optional<CellFacts>> ReadObservation(const CellRecord& record) const;
  absl::StatusOr<std::optional<Json>> ReadRequest(const CellRecord& record) const;
  absl::Status WriteVerdict(const CellRecord& record) const;
  // Includes the evidence, which run.json leaves out. Absent if the cell has not been judged.
  absl::StatusOr<std::optional<Verdict>> ReadVerdict(const CellRecord& record) const;

  // Fails at once if another process works in this folder.
  absl::StatusOr<FileLock> Lock() const;

  // The file of a runtime's lock, by the lock's key.
  std::filesystem::path lock(const std::string& key) const {
    return root_ / "locks" / (key + ".json");
  }
  absl::Status WriteLock(const RuntimeLock& lock) const;
  // NotFound if the run has no such file, as runs of older versions.
  absl::StatusOr<RuntimeLock> ReadLock(const std::string& key) const;

  absl::Status WriteRun(const RunRecord& run) const;
  // All that it names lies in this directory, links resolved: a run may come from anyone.
  absl::StatusOr<RunRecord> ReadRun() const;

 private:
  absl::Status CheckFolder(const CellRecord& record) const;
  absl::Status CheckLinks() const;
  absl::Status SyncFoldersAbove(const std::filesystem::path& dir) const;

  std::filesystem::path root_;
};

}  // namespace bkm

#endif  // HARNESS_RUNNER_RUN_DIRECTORY_H_
