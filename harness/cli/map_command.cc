// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/status_macros.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/console.h"
#include "harness/cli/console_observer.h"
#include "harness/cli/executor_option.h"
#include "harness/cli/sandbox_option.h"
#include "harness/cli/selection.h"
#include "harness/history/map_session.h"
#include "harness/session/interrupt.h"
#include "harness/site/map_picture.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

std::string PictureOf(const ApiMap& map) { return ToSvg(map); }

class MapCommand : public CliCommand {
 public:
  const char* name() const override { return "map"; }
  const char* summary() const override {
    return "Map which commits of an engine and its library work together";
  }
  const char* examples() const override {
    return "The map checks every pair from its sources, and runs cells only where they decide a "
           "boundary. The folder holds map.json, map.svg and the run directories. The same "
           "command resumes an interrupted map. bkm which reads the map.\n"
           "Exit 0: every boundary is decided. Exit 1: --budget was spent first. Exit 3: "
           "interrupted.\n"
           "Examples:\n"
           "  bkm map\n"
           "  bkm map --since 2026-06-01 --known runs/history --budget 50\n"
           "  bkm map --static-only --out maps/static";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("--engine", options_.engine_kind, "Engine kind (default: verl-torchtitan)");
    app.add_option("--since", options_.since, "Oldest day, YYYY-MM-DD (default: 2026-02-01)");
    app.add_option("--engine-tip", options_.engine_tip,
                   "Newest revision of the engine (default: HEAD)");
    app.add_option("--library-tip", options_.library_tip,
                   "Newest revision of the library (default: HEAD)");
    app.add_option("--attention", options_.attention, "Attention of the cells (default: flex)");
    app.add_option("--model", options_.model, "Model of the cells (default: qwen3)");
    app.add_option("--known", options_.known, "Run directories whose results are used")
        ->delimiter(',');
    app.add_option(
           "--resolution", options_.resolution,
           "Largest distance, in commits, between two runs with the same outcome; 0: no limit")
        ->check(CLI::Range(0, 100000))
        ->capture_default_str();
    app.add_option("--budget", options_.budget, "Maximum number of cells to run (default: 400)");
    app.add_option("--jobs,-j", options_.jobs, "Cells to run at once (default: one per core)")
        ->check(CLI::Range(1, 1024));
    sandbox_.AddTo(app);
    executor_.AddTo(app);
    app.add_option("--out", out_, "Folder (default: maps/KIND)");
    app.add_option("--git-mirror", git_mirror_, kGitMirrorHelp);
    app.add_flag("--static-only", static_only_, "Run no cell");
    app.add_flag("--json", json_, "Print map.json");
  }

  absl::StatusOr<int> Run() override {
    const EngineKind* kind = FindEngineKind(options_.engine_kind);
    if (!kind || kind->entry_modules.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--engine: there is no static check, and so no map, for '", options_.engine_kind, "'",
          kind ? "" : DidYouMean(options_.engine_kind, EngineKindNames())));
    }
    options_.folder = fs::absolute(out_.empty() ? "maps/" + options_.engine_kind : out_);
    options_.mirrors = GitMirrorFolder(git_mirror_);
    if (!static_only_) RETURN_IF_ERROR(sandbox_.Check());
    options_.sandbox = sandbox_.level();
    ASSIGN_OR_RETURN(options_.executor, executor_.Maker());
    ConsoleObserver observer(/*quiet=*/json_);
    ASSIGN_OR_RETURN(MapSession session, MapSession::Create(options_, PictureOf, observer));
    InterruptSignals signals;
    bool spent = false;
    if (!static_only_) {
      ASSIGN_OR_RETURN(spent, session.RunBoundaries(signals));
    }
    RETURN_IF_ERROR(session.Finish());
    if (json_) {
      Print(ToText(ToJson(session.map())));
    } else {
      Printf("%sMap: %s\nPicture: %s\n", ToSummary(session.map()).c_str(),
             session.json_path().c_str(), session.picture_path().c_str());
    }
    if (signals.heard()) return kExitInterrupted;
    return spent ? kExitVerdictsDiffer : kExitAsExpected;
  }

 private:
  MapOptions options_;
  SandboxOption sandbox_;
  ExecutorOption executor_{MakeRayExecutors};
  std::string out_;
  std::string git_mirror_;
  bool static_only_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeMapCommand() { return std::make_unique<MapCommand>(); }

}  // namespace bkm
