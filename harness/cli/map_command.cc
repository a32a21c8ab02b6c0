// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/apicheck/api_map.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/cli/command.h"
#include "harness/cli/console_observer.h"
#include "harness/cli/selection.h"
#include "harness/runner/installation.h"
#include "harness/runner/preparation.h"
#include "harness/session/api_session.h"
#include "harness/session/interrupt.h"
#include "harness/session/measurement.h"
#include "harness/site/map_picture.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

using Seconds = std::chrono::duration<double>;

class MapCommand : public CliCommand {
 public:
  const char* name() const override { return "map"; }
  const char* summary() const override {
    return "Map which commits of an engine and its library work together";
  }
  const char* examples() const override {
    return "Every pair is checked by its sources; cells are run only where they decide a boundary. "
           "The folder holds map.json, map.svg and the runs; the same command goes on where an "
           "earlier one stopped, and bkm which answers from it.\n"
           "Exit 0: every boundary is decided; 1: --budget was spent before.\n"
           "Examples:\n"
           "  bkm map\n"
           "  bkm map --since 2026-06-01 --known runs/history --budget 50\n"
           "  bkm map --static-only --out maps/static";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("--engine", kind_, "Kind of engine (default: verl-torchtitan)");
    app.add_option("--since", since_, "First day, YYYY-MM-DD (default: 2026-02-01)");
    app.add_option("--engine-tip", engine_tip_, "Where the engine's history ends (default: HEAD)");
    app.add_option("--library-tip", library_tip_, "Where the library's ends (default: HEAD)");
    app.add_option("--attention", attention_, "Of the cells that are run (default: flex)");
    app.add_option("--model", model_, "Of the cells that are run (default: qwen3)");
    app.add_option("--known", known_, "Run directories whose cells count")->delimiter(',');
    app.add_option("--resolution", resolution_,
                   "Runs that came to the same lie at most as many commits apart; 0: any number")
        ->check(CLI::Range(0, 100000))
        ->capture_default_str();
    app.add_option("--budget", budget_, "Cells to run at most (default: 400)");
    app.add_option("--jobs,-j", jobs_, "Cells in flight (default: one per core)")
        ->check(CLI::Range(1, 1024));
    app.add_option("--out", out_, "Folder (default: maps/KIND)");
    app.add_option("--git-mirror", git_mirror_, kGitMirrorHelp);
    app.add_flag("--static-only", static_only_, "Run no cell");
    app.add_flag("--json", json_, "Print map.json");
  }

  absl::StatusOr<int> Run() override {
    const EngineKind* kind = FindEngineKind(kind_);
    if (!kind || kind->entry_modules.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--engine: no map can be made of '", kind_, "'",
                       kind ? "" : DidYouMean(kind_, EngineKindNames())));
    }
    folder_ = fs::absolute(out_.empty() ? "maps/" + kind_ : out_);
    ASSIGN_OR_RETURN(ApiMap map, MakePlane(*kind));
    RETURN_IF_ERROR(TakeKnown(map));
    InterruptSignals signals;
    bool spent = false;
    if (!static_only_) {
      ASSIGN_OR_RETURN(spent, RunBoundaries(map, signals));
    }
    map.finished = map.MakeFrontier().Wanted(1).empty();
    RETURN_IF_ERROR(Write(map));
    if (json_) std::fputs(ToText(ToJson(map)).c_str(), stdout);
    if (!json_) PrintSummary(map);
    if (signals.heard()) return kExitInterrupted;
    return spent ? kExitVerdictsDiffer : kExitAsExpected;
  }

 private:
  absl::StatusOr<ApiMap> MakePlane(const EngineKind& kind) {
    const auto start = std::chrono::steady_clock::now();
    ApiSession session(GitMirrorFolder(git_mirror_), "");
    ASSIGN_OR_RETURN(Versions* const versions, session.versions());
    ASSIGN_OR_RETURN(const auto engines, History(*versions, kind.engine_source, engine_tip_));
    ASSIGN_OR_RETURN(const auto libraries, History(*versions, kind.library_source, library_tip_));
    ConsoleObserver console(/*quiet=*/json_);
    session.ReportScan(console);
    const auto scanned = std::chrono::steady_clock::now();
    ASSIGN_OR_RETURN(ApiCheck* const check, session.CheckOf(kind));
    std::vector<Tree> rows;
    std::vector<Tree> columns;
    for (const CheckedVersion& engine : engines) rows.push_back(engine.tree);
    for (const CheckedVersion& library : libraries) columns.push_back(library.tree);
    ApiMap map{.engine_kind = kind.name,
               .engine_source = kind.engine_source,
               .library_source = kind.library_source,
               .since = since_,
               .attention = attention_,
               .model = model_,
               .resolution = resolution_};
    ASSIGN_OR_RETURN(map.plane, check->Plane(rows, columns));
    const Seconds scan = scanned - start;
    const Seconds plane = std::chrono::steady_clock::now() - scanned;
    const double pairs = static_cast<double>(rows.size()) * static_cast<double>(columns.size());
    std::fprintf(
        stderr,
        "bkm: %zu x %zu commits: scan and trees %.2f s, plane %.2f s (%.0f pairs a second; "
        "%d different engines)\n",
        rows.size(), columns.size(), scan.count(), plane.count(), pairs / plane.count(),
        check->distinct_engines());
    ASSIGN_OR_RETURN(map.engines, Axis(*versions, kind.engine_source, engines));
    ASSIGN_OR_RETURN(map.libraries, Axis(*versions, kind.library_source, libraries));
    return map;
  }

  // The commits since the day, and the releases that lie on branches of their own, by their day.
  absl::StatusOr<std::vector<CheckedVersion>> History(Versions& versions, const std::string& source,
                                                      const std::string& tip) const {
    ASSIGN_OR_RETURN(std::vector<CheckedVersion> found, versions.Since(source, tip, since_));
    ASSIGN_OR_RETURN(const auto releases, versions.Releases(source));
    for (const auto& [commit, tag] : releases) {
      // Clang before 16 captures no structured binding.
      const auto is_it = [&commit = commit](const CheckedVersion& v) {
        return v.spec.revision == commit;
      };
      if (std::any_of(found.begin(), found.end(), is_it)) continue;
      ASSIGN_OR_RETURN(const auto release,
                       versions.Find({absl::StrCat("git:", source, "@", commit)}));
      if (release[0].date < since_) continue;
      const auto later = [&](const CheckedVersion& v) { return v.date > release[0].date; };
      found.insert(std::find_if(found.begin(), found.end(), later), release[0]);
    }
    return found;
  }

  static absl::StatusOr<std::vector<MapCommit>> Axis(Versions& versions, const std::string& source,
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

  fs::path JsonPath() const { return folder_ / "map.json"; }

  absl::Status Write(const ApiMap& map) const {
    RETURN_IF_ERROR(WriteFile(JsonPath(), ToText(ToJson(map))));
    return WriteFile(folder_ / "map.svg", ToSvg(map));
  }

  // Cells of this map's earlier runs, and of those that the user names.
  absl::Status TakeKnown(ApiMap& map) const {
    std::error_code error;
    if (fs::exists(JsonPath(), error)) {
      ASSIGN_OR_RETURN(const Json json, ReadJsonFile(JsonPath()));
      ASSIGN_OR_RETURN(const ApiMap old, ApiMapFromJson(json, JsonPath().string()));
      if (old.attention == attention_ && old.model == model_ && old.engine_kind == kind_) {
        for (const auto& [point, cell] : old.cells) {
          Take(map, old.engines[point.row].commit, old.libraries[point.column].commit, cell);
        }
      }
    }
    for (const std::string& folder : known_) {
      ASSIGN_OR_RETURN(const RunRecord run, RunDirectory(folder).ReadRun());
      TakeRun(map, run);
    }
    return absl::OkStatus();
  }

  void TakeRun(ApiMap& map, const RunRecord& run) const {
    for (const CellRecord& record : run.cells) {
      const Cell& cell = record.cell;
      const bool fits = cell.engine == kind_ && cell.engine_subject && cell.library_subject &&
                        cell.engine_subject->source == SourceKind::kGit &&
                        cell.library_subject->source == SourceKind::kGit && cell.plant.empty() &&
                        cell.probe.attention == attention_ && cell.probe.model == model_;
      if (!fits || !record.verdict) continue;
      Take(map, cell.engine_subject->revision, cell.library_subject->revision,
           {.verdict = std::string(Name(record.verdict->kind)),
            .stage = std::string(Name(record.verdict->stage)),
            .reason = record.verdict->reason,
            .id = record.id});
    }
  }

  static void Take(ApiMap& map, const std::string& engine, const std::string& library,
                   MapCell cell) {
    const auto place = [](const std::vector<MapCommit>& axis, const std::string& commit) {
      for (size_t i = 0; i < axis.size(); ++i) {
        if (axis[i].commit == commit) return static_cast<int>(i);
      }
      return -1;
    };
    cell.point = {place(map.engines, engine), place(map.libraries, library)};
    if (cell.point.row >= 0 && cell.point.column >= 0) map.cells[cell.point] = cell;
  }

  absl::StatusOr<Matrix> MatrixOf(const ApiMap& map, const std::vector<PlanePoint>& points) const {
    Json groups = Json::array();
    for (const PlanePoint& point : points) {
      const std::string engine =
          absl::StrCat("git:", map.engine_source, "@", map.engines[point.row].commit);
      const std::string library =
          absl::StrCat("git:", map.library_source, "@", map.libraries[point.column].commit);
      groups.push_back(
          {{"engine", {{"kind", kind_}, {"subjects", Json::array({engine})}}},
           {"library", Json::array({library})},
           {"probe",
            {{"model", Json::array({model_})}, {"attention", Json::array({attention_})}}}});
    }
    return MatrixFromJson(Json{{"schema", 1}, {"name", "map"}, {"groups", groups}}, "map");
  }

  // True: the budget was spent before all was decided.
  absl::StatusOr<bool> RunBoundaries(ApiMap& map, InterruptSignals& signals) {
    ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
    const MeasurementOptions options{.slots = jobs_, .controls = false};
    const std::unique_ptr<LocalExecutor> workers =
        MakeWorkers(installation, options, RunDirectory(folder_), signals);
    int left = budget_;
    for (int round = 1;; ++round) {
      const std::vector<PlanePoint> wanted = map.MakeFrontier().Wanted(left);
      if (wanted.empty()) return left == 0 && !map.MakeFrontier().Wanted(1).empty();
      if (round == 1) RETURN_IF_ERROR(installation.CheckBuilt());
      left -= static_cast<int>(wanted.size());
      std::fprintf(stderr, "bkm: round %d: %zu cells\n", round, wanted.size());
      ASSIGN_OR_RETURN(const RunRecord run,
                       RunRound(installation, options, *workers, map, wanted, signals));
      TakeRun(map, run);
      RETURN_IF_ERROR(Write(map));
      if (signals.heard() || !run.finished) return false;
      RETURN_IF_ERROR(CheckProgress(map, wanted));
    }
  }

  // A cell without a verdict would be wanted for ever.
  static absl::Status CheckProgress(const ApiMap& map, const std::vector<PlanePoint>& wanted) {
    for (const PlanePoint& point : wanted) {
      if (map.cells.contains(point)) continue;
      return absl::InternalError(absl::StrCat("no verdict for ", map.engines[point.row].commit,
                                              " x ", map.libraries[point.column].commit));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<RunRecord> RunRound(const Installation& installation,
                                     const MeasurementOptions& options, LocalExecutor& workers,
                                     const ApiMap& map, const std::vector<PlanePoint>& points,
                                     InterruptSignals& signals) const {
    ConsoleObserver observer(/*quiet=*/json_);
    ASSIGN_OR_RETURN(const Matrix matrix, MatrixOf(map, points));
    ASSIGN_OR_RETURN(
        const std::unique_ptr<Preparation> preparation,
        Preparation::Create(matrix, {.mirrors = GitMirrorFolder(git_mirror_)}, observer));
    ASSIGN_OR_RETURN(const std::vector<PlannedCell> plan,
                     ExpandMatrix(matrix, {}, preparation->Environment()));
    ASSIGN_OR_RETURN(std::vector<PreparedCell> cells, PrepareAll(plan, *preparation, signals));
    std::error_code error;
    fs::path folder;
    for (int number = 1; folder.empty() || fs::exists(folder, error); ++number) {
      folder = folder_ / "runs" / absl::StrFormat("%03d", number);
    }
    const RunDirectory directory(folder);
    return Measure({installation, matrix, directory, options, observer, signals}, workers,
                   std::move(cells));
  }

  void PrintSummary(const ApiMap& map) const {
    for (const WorkingBlock& block : map.Working()) {
      const MapCommit& oldest = map.libraries[block.first_column];
      const MapCommit& newest = map.libraries[block.last_column];
      std::printf("%s %s to %s (%d commits) x %s %s (%s) to %s (%s): works, %d commits\n",
                  map.engine_source.c_str(),
                  map.engines[block.first_row].commit.substr(0, 9).c_str(),
                  map.engines[block.last_row].commit.substr(0, 9).c_str(),
                  block.last_row - block.first_row + 1, map.library_source.c_str(),
                  oldest.commit.substr(0, 9).c_str(), oldest.date.c_str(),
                  newest.commit.substr(0, 9).c_str(), newest.date.c_str(),
                  block.last_column - block.first_column + 1);
    }
    std::printf("%zu cells ran; %s\nMap: %s\nPicture: %s\n", map.cells.size(),
                map.finished ? "every boundary is decided"
                             : "not every boundary is decided: the same command goes on",
                JsonPath().c_str(), (folder_ / "map.svg").c_str());
  }

  std::string kind_ = "verl-torchtitan";
  std::string since_ = "2026-02-01";
  std::string engine_tip_ = "HEAD";
  std::string library_tip_ = "HEAD";
  std::string attention_ = "flex";
  std::string model_ = "qwen3";
  int resolution_ = 64;
  std::vector<std::string> known_;
  int budget_ = 400;
  int jobs_ = 0;
  std::string out_;
  std::string git_mirror_;
  bool static_only_ = false;
  bool json_ = false;
  fs::path folder_;
};

}  // namespace

std::unique_ptr<CliCommand> MakeMapCommand() { return std::make_unique<MapCommand>(); }

}  // namespace bkm
