// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <future>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/check/check_report.h"
#include "harness/cli/command.h"
#include "harness/cli/console_observer.h"
#include "harness/cli/selection.h"
#include "harness/publish/rows.h"
#include "harness/report/command_text.h"
#include "harness/report/labels.h"
#include "harness/session/api_session.h"
#include "harness/session/measurement.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNearest = 3;

// The program of that name in PATH; empty where there is none.
fs::path InPath(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::error_code error;
  for (const absl::string_view folder : absl::StrSplit(path ? path : "", ':', absl::SkipEmpty())) {
    const fs::path program = fs::path(std::string(folder)) / name;
    if (fs::is_regular_file(program, error)) return program;
  }
  return {};
}

// The user's own: of the environment that is active, else the first in PATH.
fs::path UsersPython() {
  // The launcher keeps it from uv, and from VIRTUAL_ENV.
  for (const char* variable : {"BKM_USER_ENV", "VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char* folder = std::getenv(variable);
    if (folder && *folder) return fs::path(folder) / "bin/python";
  }
  return InPath("python3");
}

class CheckCommand : public CliCommand {
 public:
  const char* name() const override { return "check"; }
  const char* summary() const override {
    return "Say whether the versions in your own environment work together";
  }
  const char* examples() const override {
    return "Reads which engine, library and torch are installed, checks their sources, and runs "
           "one training step per attention in a sandbox; nothing is written into the "
           "environment. "
           "User site-packages and PYTHONPATH are not looked at. Without --python it takes the "
           "active virtual or conda environment, else python3.\n"
           "Exit 0: everything that is installed works, at least with some attention; 1: an engine "
           "does not; 2: nothing could be checked.\n"
           "Examples:\n"
           "  bkm check\n"
           "  bkm check --python ~/venvs/train/bin/python --table published/table.json\n"
           "  bkm check --sources-only --json";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("--python", python_, "The environment's interpreter");
    app.add_option(
        "--table", table_,
        "A published table.json, for known rows and the nearest versions that work "
        "(default: published/table.json of this checkout, else golden/table/table.json)");
    app.add_option("--model", model_, "Model that is trained")->capture_default_str();
    app.add_flag("--sources-only", sources_only_, "Run nothing");
    app.add_option("--out", out_, "Run directory (default: in the cache)");
    app.add_option("--jobs,-j", jobs_, "Cells in flight (default: one per core)")
        ->check(CLI::Range(1, 1024));
    app.add_flag("--json", json_, "Print as JSON");
  }

  absl::StatusOr<int> Run() override {
    ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
    const fs::path python = python_.empty() ? UsersPython() : fs::path(python_);
    if (python.empty())
      return absl::NotFoundError("there is no python3 in PATH: name one with --python PATH");
    ApiSession api("", "");
    ASSIGN_OR_RETURN(const UserEnvironment environment,
                     UserEnvironment::Read(fs::absolute(python), api.catalog()));
    ASSIGN_OR_RETURN(std::vector<CheckedPairing> pairings, FindPairings(environment));
    std::future<void> compiled;  // beside the rest; without it cells are only slower
    if (!sources_only_)
      compiled = std::async(std::launch::async, [&] { environment.CompileSubjects(); });
    RETURN_IF_ERROR(CheckSources(environment, api, pairings));
    ConsoleObserver console(json_);
    api.ReportScan(console);
    std::string run;
    if (!sources_only_) {
      ASSIGN_OR_RETURN(run, RunCells(installation, environment, pairings, console));
      if (run.empty()) return kExitInterrupted;
    }
    const std::string day = Today();
    ASSIGN_OR_RETURN(const fs::path table, LookUp(installation, environment, day, pairings));
    const CheckReport report{
        .environment = environment, .pairings = pairings, .table = table, .run = run, .day = day};
    std::fputs(json_ ? ToText(ToJson(report)).c_str() : ToSummary(report).c_str(), stdout);
    for (const CheckedPairing& pairing : pairings) {
      if (AnswerOf(pairing) == CheckAnswer::kBroken) return kExitVerdictsDiffer;
    }
    return kExitAsExpected;
  }

 private:
  static absl::StatusOr<std::vector<CheckedPairing>> FindPairings(
      const UserEnvironment& environment) {
    std::vector<CheckedPairing> pairings;
    for (const EngineKind* kind : environment.Kinds()) {
      pairings.push_back(
          {.kind = kind,
           .engine = kind->engine_source.empty() ? "" : environment.LabelOf(kind->engine_source),
           .library = environment.LabelOf(kind->library_source)});
    }
    if (pairings.empty()) {
      return absl::NotFoundError(absl::StrCat(
          environment.python().string(),
          " holds neither torchtitan nor transformers: install what you train with, or name "
          "another interpreter (--python PATH)"));
    }
    if (environment.VersionOf("torch").empty()) {
      return absl::NotFoundError(absl::StrCat(environment.python().string(),
                                              " holds no torch: install it, or name another "
                                              "interpreter (--python PATH)"));
    }
    return pairings;
  }

  static absl::Status CheckSources(const UserEnvironment& environment, ApiSession& api,
                                   std::vector<CheckedPairing>& pairings) {
    for (CheckedPairing& pairing : pairings) {
      if (pairing.kind->entry_modules.empty() || pairing.kind->engine_source.empty()) continue;
      ASSIGN_OR_RETURN(Versions* const versions, api.versions());
      ASSIGN_OR_RETURN(ApiCheck* const check, api.CheckOf(*pairing.kind));
      const auto tree = [&](const std::string& source) {
        const InstalledPackage& package = *environment.Find(source);
        return versions->InFolder(package.folder, package.package);
      };
      ASSIGN_OR_RETURN(const Tree engine, tree(pairing.kind->engine_source));
      ASSIGN_OR_RETURN(const Tree library, tree(pairing.kind->library_source));
      ASSIGN_OR_RETURN(pairing.breaks, check->CheckRed(engine, library));
    }
    return absl::OkStatus();
  }

  // Fills in the cells; returns the run directory, or nothing when the user stopped it.
  absl::StatusOr<std::string> RunCells(const Installation& installation,
                                       const UserEnvironment& environment,
                                       std::vector<CheckedPairing>& pairings,
                                       RunObserver& console) const {
    RETURN_IF_ERROR(installation.CheckBuilt());
    std::vector<PreparedCell> cells;
    for (const CheckedPairing& pairing : pairings) {
      ASSIGN_OR_RETURN(const std::vector<PreparedCell> more,
                       environment.CellsOf(*pairing.kind, model_));
      cells.insert(cells.end(), more.begin(), more.end());
    }
    // Flex takes longest: no core shall wait for it at the end.
    std::stable_partition(cells.begin(), cells.end(), [](const PreparedCell& cell) {
      return absl::StartsWith(cell.record.cell.probe.attention, "flex");
    });
    fs::path folder = out_;
    if (out_.empty()) {
      ASSIGN_OR_RETURN(folder, CreateTempDirectory(CacheDirectory() / "checks", "check-"));
    }
    const RunDirectory directory(fs::absolute(folder));
    RETURN_IF_ERROR(CreateDirectories(directory.root()));
    InterruptSignals signals;
    const Matrix matrix{.name = "check"};
    ASSIGN_OR_RETURN(const RunRecord run,
                     Measure({installation,
                              matrix,
                              directory,
                              {.slots = jobs_, .controls = false, .reuse = false, .store = false},
                              console,
                              signals},
                             std::move(cells)));
    if (!run.finished) {
      std::fprintf(stderr, "bkm: interrupted\n");
      return std::string();
    }
    for (const CellRecord& cell : run.cells) {
      if (cell.role != CellRole::kSubject) continue;
      for (CheckedPairing& pairing : pairings) {
        if (pairing.kind->name == cell.cell.engine) pairing.cells.push_back(cell);
      }
    }
    return directory.root().string();
  }

  // The table that was published here, else the one that this checkout came with; empty: neither.
  static fs::path DefaultTable(const fs::path& root) {
    for (const char* table : {"published/table.json", "golden/table/table.json"}) {
      std::error_code error;
      if (fs::exists(root / table, error)) return root / table;
    }
    return {};
  }

  // What the published table says of the pairings; returns where it lies, or nothing.
  absl::StatusOr<fs::path> LookUp(const Installation& installation,
                                  const UserEnvironment& environment, const std::string& day,
                                  std::vector<CheckedPairing>& pairings) const {
    const fs::path path = table_.empty() ? DefaultTable(installation.root) : fs::path(table_);
    if (path.empty()) return path;
    ASSIGN_OR_RETURN(const TableOnDisk published, ReadPublishedTable(path));
    const PublishedTable& table = published.table;
    const std::string torch = environment.VersionOf("torch");
    for (CheckedPairing& pairing : pairings) {
      const EngineKind& kind = *pairing.kind;
      if (kind.engine_source.empty()) continue;
      const std::string engine = environment.SpecOf(kind.engine_source).ToString();
      const std::string library = environment.SpecOf(kind.library_source).ToString();
      for (const PublishedRow& row : table.rows) {
        const bool has = std::any_of(row.library_versions.begin(), row.library_versions.end(),
                                     [&](const auto& v) { return v.subject == library; });
        if (row.engine == kind.name && row.engine_version.subject == engine && has &&
            absl::StartsWith(torch, row.torch) && !pairing.row)
          pairing.row = row;
      }
      if (AnswerOf(pairing) != CheckAnswer::kWorks)
        pairing.nearest = NearestRows(table, pairing, engine, torch, day, kMostNearest);
      for (PublishedRow& row : pairing.nearest) NameLockFrom(published.folder, row);
      if (pairing.row) NameLockFrom(published.folder, *pairing.row);
    }
    return path;
  }

  // The user stands elsewhere than the lock lies.
  static void NameLockFrom(const fs::path& folder, PublishedRow& row) {
    if (row.pylock.empty()) return;
    const std::string lock = ShellWord((folder / row.pylock).string());
    for (std::string& line : row.install) line = absl::StrReplaceAll(line, {{row.pylock, lock}});
  }

  std::string python_;
  std::string table_;
  std::string model_ = "qwen3";
  bool sources_only_ = false;
  std::string out_;
  int jobs_ = 0;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeCheckCommand() { return std::make_unique<CheckCommand>(); }

}  // namespace bkm
