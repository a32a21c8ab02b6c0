// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_MAP_SESSION_H_
#define HARNESS_HISTORY_MAP_SESSION_H_

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "harness/apicheck/api_map.h"
#include "harness/apicheck/versions.h"
#include "harness/matrix/matrix.h"
#include "harness/model/cell_record.h"
#include "harness/model/engine_kind.h"
#include "harness/session/measurement.h"

namespace bkm {

// The two histories of a map, and the question that its cells ask.
struct MapOptions {
  std::string engine_kind = "verl-torchtitan";
  std::string since = "2026-02-01";  // YYYY-MM-DD
  std::string engine_tip = "HEAD";
  std::string library_tip = "HEAD";
  std::string attention = "flex";
  std::string model = "qwen3";
  int resolution = 64;             // ApiMap::resolution
  std::vector<std::string> known;  // run directories whose cells count
  int budget = 400;                // cells to run at most
  int jobs = 0;                    // cells in flight; 0: one per core
  SandboxLevel sandbox = SandboxLevel::kFull;
  ExecutorMaker executor = nullptr;  // null: cells run on this machine
  std::filesystem::path folder;      // of map.json, map.svg and the runs
  std::string mirrors;               // folder of bare repositories; may be empty
};

// Makes the map of an engine's and a library's history: checks every pair by its sources, then runs
// the pairs that decide a boundary, in rounds. The map is written after each round, so that another
// session with the same options continues.
class MapSession {
 public:
  // The map as an SVG picture.
  using Paint = std::string (*)(const ApiMap&);

  // Checks every pair, and takes over the cells of earlier runs. The kind must have a static check.
  // `observer` must outlive the session.
  static absl::StatusOr<MapSession> Create(MapOptions options, Paint paint, RunObserver& observer);

  // Runs rounds of cells until every boundary is decided, the budget is spent or the user
  // interrupts. Returns whether the budget was spent first.
  absl::StatusOr<bool> RunBoundaries(const InterruptSignals& signals);

  // Notes whether every boundary is decided, and writes map.json and map.svg.
  absl::Status Finish();

  const ApiMap& map() const { return map_; }
  std::filesystem::path json_path() const { return options_.folder / "map.json"; }
  std::filesystem::path picture_path() const { return options_.folder / "map.svg"; }

 private:
  MapSession(MapOptions options, Paint paint, RunObserver& observer)
      : options_(std::move(options)), paint_(paint), observer_(&observer) {}

  absl::Status MakePlane(const EngineKind& kind);
  // The commits since the first day, and the releases since then that lie on other branches, in
  // the order of their days.
  absl::StatusOr<std::vector<CheckedVersion>> History(Versions& versions, const std::string& source,
                                                      const std::string& tip) const;
  absl::Status TakeKnown();
  void TakeRun(const RunRecord& run);
  void Take(const std::string& engine, const std::string& library, MapCell cell);
  absl::StatusOr<Matrix> MatrixOf(const std::vector<PlanePoint>& points) const;
  absl::StatusOr<RunRecord> RunRound(const Installation& installation,
                                     const MeasurementOptions& options, CellExecutor& workers,
                                     const std::vector<PlanePoint>& points,
                                     const InterruptSignals& signals) const;
  absl::Status CheckProgress(const std::vector<PlanePoint>& wanted) const;
  absl::Status Write() const;

  MapOptions options_;
  Paint paint_;
  RunObserver* observer_;
  ApiMap map_;
};

// For people: a line per block of commits that work together, and how many cells ran.
std::string ToSummary(const ApiMap& map);

}  // namespace bkm

#endif  // HARNESS_HISTORY_MAP_SESSION_H_
