// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/bundle/unpack.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/json_facts.h"
#include "harness/base/staging_folder.h"
#include "harness/base/status_macros.h"
#include "harness/bundle/packed_cells.h"
#include "harness/bundle/part_file.h"
#include "harness/judge/cell_files.h"
#include "harness/model/engine_kind.h"
#include "harness/runner/preparation.h"
#include "harness/runner/run_directory.h"
#include "harness/session/measurement.h"
#include "harness/store/checksums.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

fs::path NoteOf(const std::string& bundle) {
  return CacheDirectory() / "bundles" / (bundle + ".json");
}

// A result that was checked, with its files in a folder of their own.
struct CheckedResult {
  std::string key;
  PreparedCell cell;
  MeasuredOn measured_on;
  std::string measured;  // time
  CellCost cost;
  bool is_known = false;  // the run has this observation already
};

// What was measured where: cells without a result of their own may equal a cell that was.
struct Setup {
  std::shared_ptr<const RuntimeLock> lock;
  WorkMachine machine;
};

TaskSettings SettingsOf(const BundleManifest& manifest, const WorkMachine& machine) {
  return {.cell_code = machine.cell_code,
          .limits = manifest.limits,
          .sandbox = *SandboxLevelFromName(machine.sandbox)};
}

// Reads results and checks them. Writes into `staging` only.
class Checker {
 public:
  Checker(const PartFile& results, const PackedCells& cells, const RunDirectory& staging)
      : results_(results), cells_(cells), staging_(staging), packed_(ById(cells.manifest())) {}

  absl::StatusOr<CheckedResult> Check(const std::string& key, const std::string& part) {
    const std::string place =
        absl::StrCat(results_.path().string(), ": the result ", key.substr(0, 64));
    ASSIGN_OR_RETURN(const std::string text, results_.Read(part));
    ASSIGN_OR_RETURN(const CellResult result, ReadCellResult(text, place));
    const auto packed = packed_.find(result.cell);
    if (packed == packed_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, " is of a cell that the bundle does not have"));
    }
    CheckedResult checked{.key = key};
    ASSIGN_OR_RETURN(const WorkMachine machine, Machine(result.machine, place));
    ASSIGN_OR_RETURN(const std::shared_ptr<const RuntimeLock> lock,
                     Lock(*packed->second, result.lock, place));
    checked.measured_on = MeasuredOnOf(machine, lock.get());
    checked.cell = cells_.CellIn(*packed->second, lock);
    if (result.control) {
      std::optional<PreparedCell> control = ControlOf(checked.cell);
      if (!control) {
        return absl::InvalidArgumentError(
            absl::StrCat(place, " is of a control that its cell does not have"));
      }
      checked.cell = *std::move(control);
    }
    const TaskSettings settings = SettingsOf(cells_.manifest(), machine);
    if (KeyOf(checked.cell, settings) != key) {
      return absl::InvalidArgumentError(absl::StrCat(
          place, " does not have the key of ", checked.cell.record.id, ": it is another cell's"));
    }
    setups_.insert({absl::StrCat(result.lock, " ", result.machine), {lock, machine}});
    RETURN_IF_ERROR(Stage(result, settings, place, checked));
    return checked;
  }

  const std::map<std::string, Setup>& setups() const { return setups_; }

 private:
  absl::StatusOr<WorkMachine> Machine(const std::string& part, const std::string& place) {
    ASSIGN_OR_RETURN(const std::string text, results_.Read(part));
    return ReadDocument<WorkMachine>(text, absl::StrCat(place, ": the machine ", part));
  }

  absl::StatusOr<std::shared_ptr<const RuntimeLock>> Lock(const PackedCell& packed,
                                                          const std::string& part,
                                                          const std::string& place) {
    if (part.empty() != !packed.stopped.is_null()) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, part.empty() ? " has no lock" : " has a lock, but cannot have run"));
    }
    if (part.empty()) return std::shared_ptr<const RuntimeLock>();
    const auto known = locks_.find(part);
    if (known != locks_.end()) return known->second;
    ASSIGN_OR_RETURN(const std::string text, results_.Read(part));
    ASSIGN_OR_RETURN(RuntimeLock lock,
                     ReadPackedLock(text, absl::StrCat(place, ": the lock ", part)));
    const std::shared_ptr<const RuntimeLock> own = cells_.LockOf(packed);
    if (own && own->Key() == lock.Key()) return locks_[part] = own;
    if (lock.policy != "existing") {
      return absl::InvalidArgumentError(
          absl::StrCat(place, " has a lock that was not packed: ", part));
    }
    // The path of an interpreter elsewhere must not be taken for one of this machine.
    lock.interpreter.clear();
    return locks_[part] = std::make_shared<const RuntimeLock>(std::move(lock));
  }

  absl::Status Stage(const CellResult& result, const TaskSettings& settings,
                     const std::string& place, CheckedResult& checked) {
    const CellRecord& record = checked.cell.record;
    const fs::path folder = staging_.cell(record);
    RETURN_IF_ERROR(
        staging_.PrepareCell(record, MakeRequest(checked.cell, folder, settings), "bkm"));
    RETURN_IF_ERROR(RemoveTree(folder / "rerun.sh"));
    RETURN_IF_ERROR(WriteMeasuredOn(checked.measured_on, folder));
    std::optional<std::string> observation;
    for (const ResultFile& file : result.files) {
      ASSIGN_OR_RETURN(std::string content, results_.Read(file.part));
      if (file.path == "observation.json") {
        observation = std::move(content);
      } else {
        RETURN_IF_ERROR(WriteScratchFile(folder / file.path, content));
      }
    }
    if (!observation) return absl::InvalidArgumentError(absl::StrCat(place, " has no observation"));
    ASSIGN_OR_RETURN(const Json json,
                     ParseJson(*observation, absl::StrCat(place, ": observation.json")));
    // The same gate as for a cell that has just ended here.
    const CellFacts facts = AdmittedCell(CellFacts::OfReport(json), folder);
    if (facts.json() != json) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, " has an observation that no cell of this bkm can give"));
    }
    checked.measured = facts.measured();
    checked.cost = facts.cost();
    return staging_.WriteObservation(record, facts);
  }

  const PartFile& results_;
  const PackedCells& cells_;
  const RunDirectory& staging_;
  const std::map<std::string, const PackedCell*> packed_;
  std::map<std::string, std::shared_ptr<const RuntimeLock>> locks_;  // by part
  std::map<std::string, Setup> setups_;
};

// Whether the run has a sound observation of the cell with this key.
bool IsKnown(const RunDirectory& run, const CheckedResult& result) {
  const auto request = run.ReadRequest(result.cell.record);
  const auto observation = run.ReadObservation(result.cell.record);
  return request.ok() && *request && TextOf(**request, "key") == result.key && observation.ok() &&
         *observation && run.VerifyCell(result.cell.record).ok();
}

absl::Status MoveCell(const RunDirectory& staging, const RunDirectory& run,
                      const CellRecord& record) {
  const fs::path target = run.cell(record);
  RETURN_IF_ERROR(RemoveTree(target));
  RETURN_IF_ERROR(CreateDirectories(target.parent_path()));
  if (::rename(staging.cell(record).c_str(), target.c_str()) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot write ", target.string(), ": ", std::strerror(errno)));
  }
  return SyncFolder(target.parent_path());
}

// Only what was packed here, or what the user names, says which cells results may have.
absl::Status CheckBundle(const UnpackOptions& options, const PackedCells& cells) {
  if (!options.bundle.empty()) {
    ASSIGN_OR_RETURN(const PartFile file, PartFile::OpenForReading(options.bundle));
    ASSIGN_OR_RETURN(const std::string bundle, file.PartOf(kManifestName));
    if (bundle == cells.bundle()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(options.results.string(), " holds results of the bundle ", cells.bundle(),
                     ", and ", options.bundle.string(), " is the bundle ", bundle));
  }
  std::error_code error;
  if (fs::exists(NoteOf(cells.bundle()), error)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(options.results.string(), " holds results of the bundle ", cells.bundle(),
                   ", which was not packed on this machine: name its file with --bundle"));
}

// Whether the folder is missing, or holds at most what is written before its run.json.
bool IsNewRun(const RunDirectory& directory) {
  const std::string begun = absl::StrCat(directory.run_json().filename().string(), ".");
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory.root(), error)) {
    const std::string name = entry.path().filename();
    if (name != ".lock" && !absl::StartsWith(name, begun)) return false;
  }
  return true;
}

absl::StatusOr<std::optional<RunRecord>> ReadOldRun(const RunDirectory& directory,
                                                    const std::string& matrix,
                                                    const std::string& sandbox) {
  std::error_code error;
  if (!fs::exists(directory.run_json(), error)) {
    if (IsNewRun(directory)) return std::optional<RunRecord>();
    return absl::InvalidArgumentError(
        absl::StrCat(directory.root().string(), " is not a run directory: it has no run.json"));
  }
  ASSIGN_OR_RETURN(RunRecord run, directory.ReadRun());
  if (run.matrix != matrix) {
    return absl::InvalidArgumentError(absl::StrCat(directory.root().string(),
                                                   " is a run of the matrix ", run.matrix,
                                                   ", and the results are of ", matrix));
  }
  if (run.cells.empty()) run.sandbox = sandbox;
  if (!sandbox.empty() && run.sandbox != sandbox) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory.root().string(), " has cells of the sandbox level '", run.sandbox,
                     "', and the results are of '", sandbox, "': unpack them into another folder"));
  }
  return std::optional<RunRecord>(std::move(run));
}

class Unpacking {
 public:
  Unpacking(const Installation& installation, const UnpackOptions& options, RunObserver& observer,
            const InterruptSignals& signals)
      : installation_(installation),
        options_(options),
        observer_(observer),
        signals_(signals),
        directory_(fs::absolute(options.run)) {}

  absl::StatusOr<UnpackSummary> Do() {
    ASSIGN_OR_RETURN(const PartFile results, PartFile::OpenForReading(options_.results));
    ASSIGN_OR_RETURN(const PackedCells cells, PackedCells::Read(results));
    RETURN_IF_ERROR(CheckBundle(options_, cells));
    ASSIGN_OR_RETURN(const StagingFolder folder,
                     StagingFolder::Create(directory_.root().parent_path(), "unpack"));
    const RunDirectory staging(folder.path());
    RETURN_IF_ERROR(CheckAll(results, cells, staging));
    AddRecords(cells);
    if (checked_.empty()) return std::move(summary_);
    RETURN_IF_ERROR(MoveAll(staging));
    RETURN_IF_ERROR(JudgeAll(cells));
    return std::move(summary_);
  }

 private:
  absl::Status CheckAll(const PartFile& results, const PackedCells& cells,
                        const RunDirectory& staging) {
    ASSIGN_OR_RETURN(const auto named, results.Named(kResultPrefix));
    Checker checker(results, cells, staging);
    for (const auto& [key, part] : named) {
      if (signals_.heard()) return absl::CancelledError("interrupted before anything was unpacked");
      ASSIGN_OR_RETURN(CheckedResult checked, checker.Check(key, part));
      if (!ids_.insert(checked.cell.record.id).second) {
        return absl::InvalidArgumentError(absl::StrCat(
            options_.results.string(), " has two results of ", checked.cell.record.id,
            ", measured by different code or in different sandboxes: unpack them one at a time"));
      }
      by_key_[key] = checked_.size();
      checked_.push_back(std::move(checked));
    }
    setups_ = checker.setups();
    std::string sandbox;
    for (const auto& [name, setup] : setups_) {
      if (!sandbox.empty() && sandbox != setup.machine.sandbox) {
        return absl::InvalidArgumentError(absl::StrCat(
            options_.results.string(), " mixes cells of two sandbox levels: measure them again"));
      }
      sandbox = setup.machine.sandbox;
    }
    ASSIGN_OR_RETURN(const std::string skipped, SkippedText(results));
    ASSIGN_OR_RETURN(summary_.skipped,
                     ReadDocument<SkippedCells>(skipped, options_.results.string()));
    ASSIGN_OR_RETURN(const auto old, ReadOldRun(directory_, cells.manifest().matrix, sandbox));
    summary_.run = old.value_or(
        RunRecord{.matrix = cells.manifest().matrix, .finished = true, .sandbox = sandbox});
    return absl::OkStatus();
  }

  static absl::StatusOr<std::string> SkippedText(const PartFile& results) {
    const absl::StatusOr<std::string> part = results.PartOf(kSkippedName);
    if (absl::IsNotFound(part.status())) return DocumentText(SkippedCells());  // killed before
    RETURN_IF_ERROR(part.status());
    return results.Read(*part);
  }

  absl::Status MoveAll(const RunDirectory& staging) {
    RETURN_IF_ERROR(CreateDirectories(directory_.root()));
    ASSIGN_OR_RETURN(const FileLock lock, directory_.Lock());
    // First of all: with it, a folder that a killed unpack left is a run.
    summary_.run.finished = false;
    RETURN_IF_ERROR(AddMachines());
    RETURN_IF_ERROR(directory_.WriteRun(summary_.run));
    for (CheckedResult& checked : checked_) {
      const CellRecord& record = checked.cell.record;
      checked.is_known = IsKnown(directory_, checked);
      if (checked.cell.lock) RETURN_IF_ERROR(directory_.WriteLock(*checked.cell.lock));
      if (!checked.is_known) RETURN_IF_ERROR(MoveCell(staging, directory_, record));
      ++(checked.is_known ? summary_.known : summary_.unpacked);
    }
    return absl::OkStatus();
  }

  // The subjects in the order of the bundle, then the controls.
  void AddRecords(const PackedCells& cells) {
    for (size_t i = 0; i < summary_.run.cells.size(); ++i) places_[summary_.run.cells[i].id] = i;
    for (const PackedCell& packed : cells.manifest().cells) {
      bool found = false;
      for (const auto& [name, setup] : setups_) {
        if ((setup.lock == nullptr) != !packed.stopped.is_null()) continue;
        PreparedCell cell = cells.CellIn(packed, setup.lock);
        const bool is_own = setup.lock && setup.lock->policy != "existing";
        if (is_own && setup.lock->Key() != packed.record.lock) continue;
        const auto result = by_key_.find(KeyOf(cell, SettingsOf(cells.manifest(), setup.machine)));
        if (result == by_key_.end()) continue;
        found = true;
        AddRecord(std::move(cell), checked_[result->second]);
      }
      if (!found) summary_.missing.push_back(packed.record.id);
    }
    for (const CheckedResult& checked : checked_) {
      if (checked.cell.record.role == CellRole::kControl) AddRecord(checked.cell, checked);
    }
  }

  void AddRecord(PreparedCell cell, const CheckedResult& checked) {
    CellRecord record = cell.record;
    if (record.id != checked.cell.record.id) {
      record.inherited_from = checked.cell.record.id;
      record.dir = checked.cell.record.dir;
    } else {
      record.cost = checked.cost;
    }
    record.measured = checked.measured;
    const auto [place, is_new] = places_.emplace(record.id, summary_.run.cells.size());
    if (is_new) summary_.run.cells.emplace_back();
    summary_.run.cells[place->second] = record;
    cell.record = std::move(record);
    judged_.push_back(std::move(cell));
  }

  absl::Status AddMachines() {
    ASSIGN_OR_RETURN(const std::string cell_code, installation_.CellCodeDigest());
    Json& made_by = summary_.run.made_by;
    Json machines = ListOf(made_by, "machines");
    std::vector<MeasuredOn>& all = summary_.measured_on;
    for (const CheckedResult& checked : checked_) {
      const MeasuredOn& here = checked.measured_on;
      if (std::find(all.begin(), all.end(), here) != all.end()) continue;
      all.push_back(here);
      summary_.other_code |= here.machine.cell_code != cell_code;
      made_by["cell_code"] = here.machine.cell_code;
      const Json json = WriteFields(here);
      if (std::find(machines.begin(), machines.end(), json) == machines.end())
        machines.push_back(json);
    }
    made_by["machines"] = std::move(machines);
    return absl::OkStatus();
  }

  absl::Status JudgeAll(const PackedCells& cells) {
    summary_.run.made_by["limits"] = WriteFields(cells.manifest().limits);
    std::map<std::string, fs::path> folders;
    for (PreparedCell& cell : judged_) {
      if (cell.stopped || cell.probe_folder.empty()) continue;
      fs::path& folder = folders[cell.probe_folder.string()];
      if (folder.empty()) {
        ASSIGN_OR_RETURN(folder, SoundProbeFolder(cell.record.cell.probe, CacheDirectory(),
                                                  [this](const std::string& what) {
                                                    observer_.OnWarning(what);
                                                  }));
      }
      cell.probe_folder = folder;
    }
    ASSIGN_OR_RETURN(const FileLock lock, directory_.Lock());
    return JudgeMeasured(installation_, directory_, judged_, summary_.run, observer_, signals_);
  }

  const Installation& installation_;
  const UnpackOptions& options_;
  RunObserver& observer_;
  const InterruptSignals& signals_;
  const RunDirectory directory_;
  std::vector<CheckedResult> checked_;
  std::map<std::string, size_t> by_key_;
  std::set<std::string> ids_;
  std::map<std::string, Setup> setups_;
  std::map<std::string, size_t> places_;  // in the run, by id
  std::vector<PreparedCell> judged_;
  UnpackSummary summary_;
};

}  // namespace

absl::Status RememberBundle(const std::string& bundle, const std::string& matrix) {
  return WriteKeptFile(NoteOf(bundle), ToText(Json{{"matrix", matrix}}));
}

absl::StatusOr<UnpackSummary> Unpack(const Installation& installation, const UnpackOptions& options,
                                     RunObserver& observer, const InterruptSignals& signals) {
  return Unpacking(installation, options, observer, signals).Do();
}

}  // namespace bkm
