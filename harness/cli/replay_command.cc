// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/cli/console.h"
#include "harness/cli/console_observer.h"
#include "harness/cli/run_commands.h"
#include "harness/cli/sandbox_option.h"
#include "harness/cli/selection.h"
#include "harness/judge/cell_files.h"
#include "harness/matrix/matrix.h"
#include "harness/model/plant.h"
#include "harness/report/find_cell.h"
#include "harness/runner/installation.h"
#include "harness/runner/judging.h"
#include "harness/runner/local_executor.h"
#include "harness/runner/measured_on.h"
#include "harness/runner/preparation.h"
#include "harness/runner/task.h"
#include "harness/session/recorded_cell.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// What the cell will run and see. Folders of this machine that the run names are told, since the
// run may come from anyone.
std::string WhatRuns(const PreparedCell& cell, const fs::path& dir, SandboxLevel sandbox) {
  std::string text = absl::StrCat("Running ", cell.record.id, "\n");
  const auto add = [&](const char* what, const std::string& shown) {
    if (!shown.empty()) absl::StrAppend(&text, "  ", what, ": ", shown, "\n");
  };
  add("engine", cell.engine ? cell.engine->tree.string() : "");
  add("library", cell.library ? cell.library->tree.string() : "");
  add("runtime", cell.record.lock.empty() ? ""
                                          : absl::StrCat(cell.record.lock.substr(0, 12), ", ",
                                                         cell.worker.python.string()));
  add("probe", cell.probe_folder.string());
  for (const fs::path& path : cell.worker.reads) add("also read", path.string());
  add("evidence", dir.string());
  add("sandbox", std::string(Name(sandbox)));
  return text;
}

absl::StatusOr<PreparedCell> Prepare(const RunDirectory& directory, const CellRecord& record,
                                     Preparation& preparation) {
  if (std::any_of(record.cell.plant.begin(), record.cell.plant.end(), IsMutant)) {
    return absl::FailedPreconditionError(
        "the cell's files were mutated, and the mutant is gone: run bkm selftest again");
  }
  ASSIGN_OR_RETURN(const PlannedCell planned, PlanAgain(directory, record));
  ASSIGN_OR_RETURN(PreparedCell cell, PrepareAgain(directory, record, planned, preparation));
  if (cell.stopped) {
    return absl::FailedPreconditionError(
        absl::StrCat("the cell cannot run: ", cell.stopped->ending().message));
  }
  return cell;
}

class ReplayCommand : public CliCommand {
 public:
  const char* name() const override { return "replay"; }
  const char* summary() const override {
    return "Run one cell of a run again in a new process, and judge it";
  }
  const char* examples() const override {
    return "The cell is prepared from run.json, the run's lock and the cache; the paths in its "
           "request.json are not used, since a run may come from anyone. What it runs and sees is "
           "printed first.\n"
           "The new evidence is written to replay/ in the cell's folder.\n"
           "Exit 0: the same verdict as in the run. Exit 1: another verdict.\n"
           "Example: bkm replay runs/quickstart engine=verl-fsdp,attention=sdpa";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("run", run_, "Run directory")->required();
    app.add_option("cell", cell_,
                   "Cell: its id, its folder name, or a filter that matches only this cell")
        ->required();
    app.add_option("--git-mirror", git_mirror_, kGitMirrorHelp);
    app.add_option("--matrix", matrix_,
                   "Matrix file whose \"sources\" locate further repositories");
    sandbox_.AddTo(app);
    app.add_flag("--json", json_, "Print the verdict as JSON");
  }

  absl::StatusOr<int> Run() override {
    const RunDirectory directory(fs::absolute(run_));
    ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
    RETURN_IF_ERROR(sandbox_.Check(installation));
    ASSIGN_OR_RETURN(const RunRecord run, directory.ReadRun());
    ASSIGN_OR_RETURN(const CellRecord* recorded, FindCell(run, cell_));
    ASSIGN_OR_RETURN(const std::optional<MeasuredOn> elsewhere,
                     ReadMeasuredOn(run, directory.cell(*recorded)));
    if (elsewhere) {
      return absl::FailedPreconditionError(
          "another machine measured this cell (bkm unpack): run the matrix to have it here (bkm "
          "run ...)");
    }
    ASSIGN_OR_RETURN(Matrix matrix, MatrixOfRun(directory));
    fs::path matrix_folder;
    if (!matrix_.empty()) {
      ASSIGN_OR_RETURN(const Matrix named, ReadMatrix(matrix_));
      matrix.sources = named.sources;
      matrix_folder = fs::absolute(matrix_).parent_path();
    }
    ConsoleObserver observer(/*quiet=*/json_);
    ASSIGN_OR_RETURN(const std::unique_ptr<Preparation> preparation,
                     Preparation::Create(matrix,
                                         {.mirrors = GitMirrorFolder(git_mirror_),
                                          .matrix_folder = matrix_folder,
                                          .sandbox = std::string(Name(sandbox_.level()))},
                                         observer));
    ASSIGN_OR_RETURN(const PreparedCell prepared, Prepare(directory, *recorded, *preparation));
    CellRecord cell = prepared.record;
    cell.dir = absl::StrCat(recorded->dir, "/replay");
    PrintErrorf("%s", WhatRuns(prepared, directory.cell(cell), sandbox_.level()).c_str());
    ASSIGN_OR_RETURN(const std::string cell_code, installation.CellCodeDigest());
    const Json request =
        MakeRequest(prepared, directory.cell(cell),
                    {.cell_code = cell_code, .limits = matrix.limits, .sandbox = sandbox_.level()});
    RETURN_IF_ERROR(directory.PrepareCell(cell, request, "tools/bkm"));
    ASSIGN_OR_RETURN(const CellFacts facts, RunAlone(installation, directory, cell, request,
                                                     prepared.worker, sandbox_.level()));
    RETURN_IF_ERROR(directory.WriteObservation(cell, facts));
    ASSIGN_OR_RETURN(cell.verdict, RunJudge(directory).JudgeCell(run, cell));
    RETURN_IF_ERROR(directory.WriteVerdict(cell));
    return Report(*recorded, cell);
  }

 private:
  static absl::StatusOr<CellFacts> RunAlone(const Installation& installation,
                                            const RunDirectory& directory, const CellRecord& cell,
                                            const Json& request, const WorkerSetup& worker,
                                            SandboxLevel sandbox) {
    LocalExecutor executor(
        {.cell_worker = installation.cell_worker(),
         .python_code = installation.python_code(),
         .kernels = installation.kernels(),
         .preload = installation.preload(),
         .sandbox = sandbox,
         .fresh = true,
         .log_path = [&](const std::string&) { return directory.cell(cell) / "worker.stderr"; }});
    executor.Start({.id = cell.id, .worker = worker, .request = request});
    for (;;) {
      const WaitResult result = executor.WaitAny(std::chrono::seconds(60));
      if (const auto* finished = std::get_if<CellFinished>(&result))
        return AdmittedCell(finished->facts, directory.cell(cell));
    }
  }

  int Report(const CellRecord& before, const CellRecord& now) const {
    const Verdict verdict = now.verdict.value_or(Verdict());
    const bool same = before.verdict && before.verdict->kind == verdict.kind &&
                      before.verdict->stage == verdict.stage &&
                      before.verdict->reason == verdict.reason;
    if (json_) {
      Json json = ToJson(verdict);
      json["same"] = same;
      Print(ToText(json));
    } else {
      Printf("%s at %s%s%s\n%s\n", std::string(Name(verdict.kind)).c_str(),
             std::string(Name(verdict.stage)).c_str(), verdict.message.empty() ? "" : ": ",
             verdict.message.c_str(),
             same ? "the same verdict as in the run" : "another verdict than in the run");
    }
    return same ? kExitAsExpected : kExitVerdictsDiffer;
  }

  SandboxOption sandbox_;
  std::string run_;
  std::string cell_;
  std::string git_mirror_;
  std::string matrix_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeReplayCommand() { return std::make_unique<ReplayCommand>(); }

}  // namespace bkm
