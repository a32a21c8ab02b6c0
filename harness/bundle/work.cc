// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/bundle/work.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/folder_reader.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/bundle/evidence.h"
#include "harness/bundle/packed_cells.h"
#include "harness/bundle/part_file.h"
#include "harness/bundle/placement.h"
#include "harness/bundle/work_runtimes.h"
#include "harness/runner/cell_feed.h"
#include "harness/runner/cell_judge.h"
#include "harness/runner/cell_supply.h"
#include "harness/runner/measured_on.h"
#include "harness/runner/run_directory.h"
#include "harness/runner/runner.h"
#include "harness/runner/stored_observations.h"
#include "harness/session/measurement.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// Nothing is judged here: golden and floors are where the results are unpacked.
class NoJudge : public CellJudge {
 public:
  absl::Status Observe(const PreparedCell&, const Observation&) override {
    return absl::OkStatus();
  }
  absl::StatusOr<std::optional<Verdict>> Judge(const CellRecord&) override {
    return std::optional<Verdict>();
  }
  int Advance(int) override { return 0; }
};

// The file of results, which gets the evidence of each cell as the cell ends.
class Results : public StoredObservations {
 public:
  Results(PartFile file, const TaskSettings& settings, std::string machine)
      : file_(std::move(file)), settings_(settings), machine_(std::move(machine)) {}

  static absl::StatusOr<PartFile> Open(const fs::path& path, const PackedCells& cells) {
    std::error_code error;
    if (!fs::exists(path, error)) RETURN_IF_ERROR(Make(path, cells));
    // As strictly as unpack reads it, before anything is written. What a kill left unfinished is
    // undone when the file is opened to be written.
    if (!PartFile::IsUnfinished(path)) RETURN_IF_ERROR(PartFile::OpenForReading(path).status());
    ASSIGN_OR_RETURN(PartFile file, PartFile::Open(path));
    ASSIGN_OR_RETURN(const std::string bundle, file.PartOf(kManifestName));
    if (bundle == cells.bundle()) return file;
    return absl::InvalidArgumentError(absl::StrCat(
        path.string(), " holds results of another bundle: name another file with --out"));
  }

  absl::StatusOr<bool> Has(const PreparedCell& cell) const {
    const absl::StatusOr<std::string> part =
        file_.PartOf(absl::StrCat(kResultPrefix, KeyOf(cell, settings_)));
    if (absl::IsNotFound(part.status())) return false;
    RETURN_IF_ERROR(part.status());
    return true;
  }
  // The id in the bundle of a cell that runs in another lock than its own.
  void Expect(const PreparedCell& cell, const std::string& packed) {
    packed_[cell.record.id] = packed;
    if (const std::optional<PreparedCell> control = ControlOf(cell))
      packed_.emplace(control->record.id, packed);
  }
  absl::Status SetSkipped(const SkippedCells& skipped) {
    return file_.Transact([&]() -> absl::Status {
      ASSIGN_OR_RETURN(const std::string part, file_.Add(DocumentText(skipped)));
      return file_.SetName(kSkippedName, part);
    });
  }

  std::optional<KeptObservation> Find(const PreparedCell&) override { return std::nullopt; }
  void Keep(const PreparedCell& cell, const CellFacts& facts, const Json&,
            const fs::path& folder) override {
    if (facts.ending().is_lost()) {
      lost_.cells.push_back({packed_[cell.record.id], facts.ending().told()});
      return;
    }
    if (status_.ok()) status_ = Add(cell, folder);
    if (!status_.ok()) return;
    ++added_;
    controls_ += cell.record.role == CellRole::kControl;
  }
  void Discard(const KeptObservation&) override {}

  const absl::Status& status() const { return status_; }
  const SkippedCells& lost() const { return lost_; }
  int added() const { return added_; }
  int controls() const { return controls_; }

 private:
  // Makes a file without results. It is there as a whole or not at all.
  static absl::Status Make(const fs::path& path, const PackedCells& cells) {
    const fs::path made = path.string() + ".new";
    RETURN_IF_ERROR(RemoveTree(made));
    {
      ASSIGN_OR_RETURN(PartFile file, PartFile::Open(made));
      RETURN_IF_ERROR(cells.CopyTo(file));
    }
    if (::rename(made.c_str(), path.c_str()) == 0) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("cannot write ", path.string(), ": ", std::strerror(errno)));
  }

  absl::Status Add(const PreparedCell& cell, const fs::path& folder) {
    return file_.Transact([&]() -> absl::Status {
      CellResult result{.cell = packed_[cell.record.id],
                        .control = cell.record.role == CellRole::kControl};
      ASSIGN_OR_RETURN(result.machine, file_.Add(machine_));
      if (cell.lock) {
        ASSIGN_OR_RETURN(result.lock, file_.Add(ToText(ToJson(*cell.lock))));
      }
      const FolderReader reader(folder);
      ASSIGN_OR_RETURN(const std::vector<std::string> paths, EvidenceIn(reader));
      for (const std::string& path : paths) {
        const absl::StatusOr<std::string> content = reader.Read(path, PartFile::kLargestPart);
        if (absl::IsNotFound(content.status())) continue;
        RETURN_IF_ERROR(content.status());
        ASSIGN_OR_RETURN(const std::string part, file_.Add(*content));
        result.files.push_back({path, part});
      }
      ASSIGN_OR_RETURN(const std::string part, file_.Add(DocumentText(result)));
      return file_.SetName(absl::StrCat(kResultPrefix, KeyOf(cell, settings_)), part);
    });
  }

  PartFile file_;
  const TaskSettings settings_;
  const std::string machine_;
  std::map<std::string, std::string> packed_;  // id here -> id in the bundle
  absl::Status status_;
  SkippedCells lost_;
  int added_ = 0;
  int controls_ = 0;
};

bool AsksForDevice(const PackedCells& cells) {
  const std::vector<PackedCell>& all = cells.manifest().cells;
  return std::any_of(all.begin(), all.end(),
                     [](const PackedCell& cell) { return cell.record.cell.probe.device != "cpu"; });
}

struct Prepared {
  std::vector<PreparedCell> cells;
  SkippedCells skipped;
  int known = 0;
  bool interrupted = false;
};

absl::StatusOr<Prepared> Prepare(const PackedCells& cells, Placement& placement, Results& results,
                                 const InterruptSignals& signals) {
  Prepared prepared;
  for (const PackedCell& packed : cells.manifest().cells) {
    const auto skip = [&](const absl::Status& why) {
      prepared.skipped.cells.push_back({packed.record.id, std::string(why.message())});
    };
    if (signals.heard()) {
      prepared.interrupted = true;
      return prepared;
    }
    absl::StatusOr<PreparedCell> cell = placement.Choose(packed, cells);
    if (!cell.ok()) {
      skip(cell.status());
      continue;
    }
    results.Expect(*cell, packed.record.id);
    ASSIGN_OR_RETURN(const bool known, results.Has(*cell));
    if (known) {
      ++prepared.known;
      continue;
    }
    const absl::Status placed = placement.Place(packed, cells, *cell);
    // A damaged bundle is no matter of this machine.
    if (absl::IsDataLoss(placed)) return placed;
    if (placed.ok()) {
      prepared.cells.push_back(*std::move(cell));
    } else if (!signals.heard()) {
      skip(placed);
    }
  }
  return prepared;
}

absl::StatusOr<bool> RunCells(const Installation& installation, const WorkOptions& options,
                              const TaskSettings& task, const PackedCells& cells,
                              std::vector<PreparedCell> prepared, Results& results,
                              RunObserver& observer, const InterruptSignals& signals) {
  // What a killed command had measured and not yet added is found there.
  const RunDirectory directory(fs::absolute(options.out.string() + ".work"));
  RETURN_IF_ERROR(CreateDirectories(directory.root()));
  ASSIGN_OR_RETURN(const FileLock lock, directory.Lock());
  const int slots = options.jobs > 0
                        ? options.jobs
                        : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const MeasurementOptions measurement{.slots = slots, .sandbox = options.sandbox};
  ASSIGN_OR_RETURN(const std::unique_ptr<CellExecutor> workers,
                   MakeWorkers({installation, measurement, directory, observer, signals}));
  NoJudge judge;
  NoFeed feed;
  const RealClock clock;
  Runner runner({.slots = slots, .judges = false, .task = task, .launcher = "bkm"},
                {directory, *workers, judge, results, feed, observer, clock});
  ReadyCells supply(std::move(prepared));
  RunRecord run{.matrix = cells.manifest().matrix, .sandbox = std::string(Name(options.sandbox))};
  ASSIGN_OR_RETURN(const bool finished, runner.Run(supply, run));
  RETURN_IF_ERROR(results.status());
  // The logs of workers say why a cell was lost.
  if (finished && results.lost().cells.empty()) RemoveTree(directory.root()).IgnoreError();
  return finished;
}

}  // namespace

absl::StatusOr<WorkSummary> Work(const Installation& installation, const WorkOptions& options,
                                 RunObserver& observer, const InterruptSignals& signals) {
  ASSIGN_OR_RETURN(const PartFile bundle, PartFile::OpenForReading(options.bundle));
  ASSIGN_OR_RETURN(const PackedCells cells, PackedCells::Read(bundle));
  std::error_code error;
  if (fs::equivalent(options.bundle, options.out, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--out ", options.out.string(), " is the file of the cells: name another"));
  }
  ASSIGN_OR_RETURN(const std::string cell_code, installation.CellCodeDigest());
  WorkSummary summary{.cells = static_cast<int>(cells.manifest().cells.size())};
  if (cell_code != cells.manifest().cell_code) summary.other_code = cells.manifest().cell_code;
  ASSIGN_OR_RETURN(summary.machine, ThisMachine(cell_code, options.sandbox));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<WorkRuntimes> runtimes,
      WorkRuntimes::Create(options.python, installation.cell_worker(), summary.machine.sandbox,
                           [&](const std::string& what) { observer.OnNote(what); }));
  Placement placement(bundle, *runtimes, observer);
  // A driver that does not answer stops only the cells that ask for a device.
  if (AsksForDevice(cells) && placement.Devices().ok())
    summary.machine.devices = *placement.Devices();
  ASSIGN_OR_RETURN(PartFile file, Results::Open(fs::absolute(options.out), cells));
  const TaskSettings task{
      .cell_code = cell_code, .limits = cells.manifest().limits, .sandbox = options.sandbox};
  Results results(std::move(file), task, DocumentText(summary.machine));
  ASSIGN_OR_RETURN(Prepared prepared, Prepare(cells, placement, results, signals));
  summary.known = prepared.known;
  for (const std::string& text : SkippedTexts(prepared.skipped)) observer.OnWarning(text);
  summary.skipped = std::move(prepared.skipped);
  summary.finished = !prepared.interrupted;
  if (summary.finished && !prepared.cells.empty()) {
    ASSIGN_OR_RETURN(summary.finished,
                     RunCells(installation, options, task, cells, std::move(prepared.cells),
                              results, observer, signals));
  }
  for (const std::string& text : SkippedTexts(results.lost())) observer.OnWarning(text);
  const std::vector<SkippedCell>& lost = results.lost().cells;
  summary.skipped.cells.insert(summary.skipped.cells.end(), lost.begin(), lost.end());
  RETURN_IF_ERROR(results.SetSkipped(summary.skipped));
  summary.ran = results.added();
  summary.controls = results.controls();
  return summary;
}

}  // namespace bkm
