// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/cli/console.h"
#include "harness/cli/run_commands.h"
#include "harness/cli/sandbox_option.h"
#include "harness/judge/cell_files.h"
#include "harness/report/find_cell.h"
#include "harness/runner/installation.h"
#include "harness/runner/judging.h"
#include "harness/runner/local_executor.h"
#include "harness/runner/task.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// A request names trees and environments in the cache, which may have been cleaned.
absl::Status CheckInputsExist(const Json& request) {
  if (IsTrue(request, "measured_elsewhere")) {
    return absl::FailedPreconditionError(
        "another machine measured this cell (bkm unpack): run the matrix to have it here (bkm run "
        "...)");
  }
  std::error_code error;
  const Json& paths = ObjectOf(request, "paths");
  // Fake pairs have no probe folder, and controls have no engine: their paths are empty.
  for (const std::string& path : {TextOf(paths, "engine"), TextOf(paths, "library"),
                                  TextOf(request, "probe_dir"), TextOf(request, "python")}) {
    if (!path.empty() && !fs::exists(path, error))
      return absl::NotFoundError(
          absl::StrCat(path, " does not exist any more: run the matrix again (bkm run ...)"));
  }
  return absl::OkStatus();
}

class ReplayCommand : public CliCommand {
 public:
  const char* name() const override { return "replay"; }
  const char* summary() const override {
    return "Run one cell of a run again in a new process, and judge it";
  }
  const char* examples() const override {
    return "The new evidence is written to replay/ in the cell's folder.\n"
           "Exit 0: the same verdict as in the run. Exit 1: another verdict.\n"
           "Example: bkm replay runs/quickstart engine=verl-fsdp,attention=sdpa";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("run", run_, "Run directory")->required();
    app.add_option("cell", cell_,
                   "Cell: its id, its folder name, or a filter that matches only this cell")
        ->required();
    sandbox_.AddTo(app);
    app.add_flag("--json", json_, "Print the verdict as JSON");
  }

  absl::StatusOr<int> Run() override {
    const RunDirectory directory(fs::absolute(run_));
    ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
    RETURN_IF_ERROR(sandbox_.Check(installation));
    ASSIGN_OR_RETURN(const RunRecord run, directory.ReadRun());
    ASSIGN_OR_RETURN(const CellRecord* recorded, FindCell(run, cell_));
    CellRecord cell = *recorded;
    ASSIGN_OR_RETURN(std::optional<Json> request, directory.ReadRequest(cell));
    if (!request)
      return absl::NotFoundError(absl::StrCat(directory.cell(cell).string(),
                                              " has no request.json: the cell did not run"));
    RETURN_IF_ERROR(CheckInputsExist(*request));
    cell.dir = absl::StrCat(cell.dir, "/replay");
    (*request)["dir"] = directory.cell(cell).string();
    (*request)["sandbox"] = std::string(Name(sandbox_.level()));
    RETURN_IF_ERROR(directory.PrepareCell(cell, *request, "tools/bkm"));
    ASSIGN_OR_RETURN(const Json observation,
                     RunAlone(installation, directory, cell, *request, sandbox_.level()));
    RETURN_IF_ERROR(directory.WriteObservation(cell, observation));
    ASSIGN_OR_RETURN(cell.verdict, RunJudge(directory).JudgeCell(run, cell));
    RETURN_IF_ERROR(directory.WriteVerdict(cell));
    return Report(*recorded, cell);
  }

 private:
  static absl::StatusOr<Json> RunAlone(const Installation& installation,
                                       const RunDirectory& directory, const CellRecord& cell,
                                       const Json& request, SandboxLevel sandbox) {
    LocalExecutor executor(
        {.cell_worker = installation.cell_worker(),
         .python_code = installation.python_code(),
         .kernels = installation.kernels(),
         .preload = installation.preload(),
         .sandbox = sandbox,
         .fresh = true,
         .log_path = [&](const std::string&) { return directory.cell(cell) / "worker.stderr"; }});
    executor.Start({.id = cell.id, .worker = WorkerOf(request, cell.lock), .request = request});
    for (;;) {
      const WaitResult result = executor.WaitAny(std::chrono::seconds(60));
      if (const auto* finished = std::get_if<CellFinished>(&result))
        return AdmittedCell(finished->observation, directory.cell(cell));
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
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeReplayCommand() { return std::make_unique<ReplayCommand>(); }

}  // namespace bkm
