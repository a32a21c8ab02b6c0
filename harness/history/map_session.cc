// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/map_session.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/check.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/history/api_session.h"
#include "harness/runner/installation.h"
#include "harness/runner/preparation.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

using Seconds = std::chrono::duration<double>;

absl::StatusOr<std::vector<MapCommit>> Axis(Versions& versions, const std::string& source,
                                            const std::vector<CheckedVersion>& found) {
  ASSIGN_OR_RETURN(const auto releases, versions.Releases(source));
  std::vector<MapCommit> axis;
  for (const CheckedVersion& version : found) {
    const auto release = releases.find(version.spec.revision);
    axis.push_back({.commit = version.spec.revision,
                    .date = version.date,
                    .title = version.title,
                    .release = release == releases.end() ? "" : release->second});
  }
  return axis;
}

// The commit's place on the axis; -1 where it has none.
int PlaceOf(const std::vector<MapCommit>& axis, const std::string& commit) {
  for (size_t i = 0; i < axis.size(); ++i) {
    if (axis[i].commit == commit) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

absl::StatusOr<MapSession> MapSession::Create(MapOptions options, Paint paint,
                                              RunObserver& observer) {
  const EngineKind* kind = FindEngineKind(options.engine_kind);
  HARNESS_CHECK(kind && !kind->entry_modules.empty());
  MapSession session(std::move(options), paint, observer);
  RETURN_IF_ERROR(session.MakePlane(*kind));
  RETURN_IF_ERROR(session.TakeKnown());
  return session;
}

absl::Status MapSession::MakePlane(const EngineKind& kind) {
  const auto start = std::chrono::steady_clock::now();
  ApiSession session(options_.mirrors, "");
  ASSIGN_OR_RETURN(Versions* const versions, session.versions());
  ASSIGN_OR_RETURN(const auto engines, History(*versions, kind.engine_source, options_.engine_tip));
  ASSIGN_OR_RETURN(const auto libraries,
                   History(*versions, kind.library_source, options_.library_tip));
  session.ReportScan(*observer_);
  const auto scanned = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(ApiCheck* const check, session.CheckOf(kind));
  std::vector<Tree> rows;
  std::vector<Tree> columns;
  for (const CheckedVersion& engine : engines) rows.push_back(engine.tree);
  for (const CheckedVersion& library : libraries) columns.push_back(library.tree);
  map_ = {.engine_kind = kind.name,
          .engine_source = kind.engine_source,
          .library_source = kind.library_source,
          .since = options_.since,
          .attention = options_.attention,
          .model = options_.model,
          .resolution = options_.resolution};
  ASSIGN_OR_RETURN(map_.plane, check->Plane(rows, columns));
  const Seconds scan = scanned - start;
  const Seconds plane = std::chrono::steady_clock::now() - scanned;
  const double pairs = static_cast<double>(rows.size()) * static_cast<double>(columns.size());
  observer_->OnNote(
      absl::StrFormat("%d x %d commits: scan and trees %.2f s, plane %.2f s (%.0f pairs a "
                      "second; %d different engines)",
                      rows.size(), columns.size(), scan.count(), plane.count(),
                      pairs / plane.count(), check->distinct_engines()));
  ASSIGN_OR_RETURN(map_.engines, Axis(*versions, kind.engine_source, engines));
  ASSIGN_OR_RETURN(map_.libraries, Axis(*versions, kind.library_source, libraries));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CheckedVersion>> MapSession::History(Versions& versions,
                                                                const std::string& source,
                                                                const std::string& tip) const {
  ASSIGN_OR_RETURN(std::vector<CheckedVersion> found, versions.Since(source, tip, options_.since));
  ASSIGN_OR_RETURN(const auto releases, versions.Releases(source));
  for (const auto& [commit, tag] : releases) {
    // Clang before 16 captures no structured binding.
    const auto is_it = [&commit = commit](const CheckedVersion& v) {
      return v.spec.revision == commit;
    };
    if (std::any_of(found.begin(), found.end(), is_it)) continue;
    ASSIGN_OR_RETURN(const auto release,
                     versions.Find({absl::StrCat("git:", source, "@", commit)}));
    if (release[0].date < options_.since) continue;
    const auto later = [&](const CheckedVersion& v) { return v.date > release[0].date; };
    found.insert(std::find_if(found.begin(), found.end(), later), release[0]);
  }
  return found;
}

absl::Status MapSession::Write() const {
  RETURN_IF_ERROR(WriteFile(json_path(), ToText(ToJson(map_))));
  return WriteFile(picture_path(), paint_(map_));
}

absl::Status MapSession::Finish() {
  map_.finished = map_.MakeFrontier().Wanted(1).empty();
  return Write();
}

absl::Status MapSession::TakeKnown() {
  std::error_code error;
  if (fs::exists(json_path(), error)) {
    ASSIGN_OR_RETURN(const ApiMap old, ReadApiMap(json_path()));
    if (old.attention == map_.attention && old.model == map_.model &&
        old.engine_kind == map_.engine_kind) {
      for (const auto& [point, cell] : old.cells)
        Take(old.engines[point.row].commit, old.libraries[point.column].commit, cell);
    }
  }
  for (const std::string& folder : options_.known) {
    ASSIGN_OR_RETURN(const RunRecord run, RunDirectory(folder).ReadRun());
    TakeRun(run);
  }
  return absl::OkStatus();
}

void MapSession::TakeRun(const RunRecord& run) {
  for (const CellRecord& record : run.cells) {
    const Cell& cell = record.cell;
    const bool fits = cell.engine == map_.engine_kind && cell.engine_subject &&
                      cell.library_subject && cell.engine_subject->source == SourceKind::kGit &&
                      cell.library_subject->source == SourceKind::kGit && cell.plant.empty() &&
                      cell.probe.attention == map_.attention && cell.probe.model == map_.model;
    if (!fits || !record.verdict) continue;
    Take(cell.engine_subject->revision, cell.library_subject->revision,
         {.verdict = std::string(Name(record.verdict->kind)),
          .stage = std::string(Name(record.verdict->stage)),
          .reason = record.verdict->reason,
          .id = record.id});
  }
}

void MapSession::Take(const std::string& engine, const std::string& library, MapCell cell) {
  cell.point = {PlaceOf(map_.engines, engine), PlaceOf(map_.libraries, library)};
  if (cell.point.row >= 0 && cell.point.column >= 0) map_.cells[cell.point] = cell;
}

absl::StatusOr<Matrix> MapSession::MatrixOf(const std::vector<PlanePoint>& points) const {
  Json groups = Json::array();
  for (const PlanePoint& point : points) {
    const std::string engine =
        absl::StrCat("git:", map_.engine_source, "@", map_.engines[point.row].commit);
    const std::string library =
        absl::StrCat("git:", map_.library_source, "@", map_.libraries[point.column].commit);
    groups.push_back(
        {{"engine", {{"kind", map_.engine_kind}, {"subjects", Json::array({engine})}}},
         {"library", Json::array({library})},
         {"probe",
          {{"model", Json::array({map_.model})}, {"attention", Json::array({map_.attention})}}}});
  }
  return MatrixFromJson(Json{{"schema", 1}, {"name", "map"}, {"groups", groups}}, "map");
}

absl::StatusOr<bool> MapSession::RunBoundaries(const InterruptSignals& signals) {
  ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
  const MeasurementOptions options{.slots = options_.jobs,
                                   .controls = false,
                                   .sandbox = options_.sandbox,
                                   .executor = options_.executor};
  const RunDirectory directory(options_.folder);
  ASSIGN_OR_RETURN(const std::unique_ptr<CellExecutor> workers,
                   MakeWorkers({installation, options, directory, *observer_, signals}));
  int left = options_.budget;
  for (int round = 1;; ++round) {
    const std::vector<PlanePoint> wanted = map_.MakeFrontier().Wanted(left);
    if (wanted.empty()) return left == 0 && !map_.MakeFrontier().Wanted(1).empty();
    if (round == 1) RETURN_IF_ERROR(installation.CheckBuilt());
    left -= static_cast<int>(wanted.size());
    observer_->OnNote(absl::StrCat("round ", round, ": ", wanted.size(), " cells"));
    ASSIGN_OR_RETURN(const RunRecord run,
                     RunRound(installation, options, *workers, wanted, signals));
    TakeRun(run);
    RETURN_IF_ERROR(Write());
    if (signals.heard() || !run.finished) return false;
    RETURN_IF_ERROR(CheckProgress(wanted));
  }
}

// A cell without a verdict would be wanted again in every round.
absl::Status MapSession::CheckProgress(const std::vector<PlanePoint>& wanted) const {
  for (const PlanePoint& point : wanted) {
    if (map_.cells.contains(point)) continue;
    return absl::InternalError(absl::StrCat("no verdict for ", map_.engines[point.row].commit,
                                            " x ", map_.libraries[point.column].commit));
  }
  return absl::OkStatus();
}

absl::StatusOr<RunRecord> MapSession::RunRound(const Installation& installation,
                                               const MeasurementOptions& options,
                                               CellExecutor& workers,
                                               const std::vector<PlanePoint>& points,
                                               const InterruptSignals& signals) const {
  ASSIGN_OR_RETURN(const Matrix matrix, MatrixOf(points));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Preparation> preparation,
      Preparation::Create(
          matrix, {.mirrors = options_.mirrors, .sandbox = std::string(Name(options_.sandbox))},
          *observer_));
  ASSIGN_OR_RETURN(const std::vector<PlannedCell> plan,
                   ExpandMatrix(matrix, {}, preparation->Environment()));
  ASSIGN_OR_RETURN(std::vector<PreparedCell> cells, PrepareAll(plan, *preparation, signals));
  std::error_code error;
  fs::path folder;
  for (int number = 1; folder.empty() || fs::exists(folder, error); ++number)
    folder = options_.folder / "runs" / absl::StrFormat("%03d", number);
  const RunDirectory directory(folder);
  return Measure({installation, matrix, directory, options, *observer_, signals}, workers,
                 std::move(cells));
}

std::string ToSummary(const ApiMap& map) {
  std::string text;
  for (const WorkingBlock& block : map.Working()) {
    const MapCommit& oldest = map.libraries[block.first_column];
    const MapCommit& newest = map.libraries[block.last_column];
    absl::StrAppend(&text, map.engine_source, " ", map.engines[block.first_row].commit.substr(0, 9),
                    " to ", map.engines[block.last_row].commit.substr(0, 9), " (",
                    block.last_row - block.first_row + 1, " commits) x ", map.library_source, " ",
                    oldest.commit.substr(0, 9), " (", oldest.date, ") to ",
                    newest.commit.substr(0, 9), " (", newest.date, "): works, ",
                    block.last_column - block.first_column + 1, " commits\n");
  }
  absl::StrAppend(&text, map.cells.size(), " cells ran; ",
                  map.finished ? "every boundary is decided"
                               : "some boundaries are undecided: run the same command to continue",
                  "\n");
  return text;
}

}  // namespace bkm
