// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.

#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/console.h"
#include "harness/cli/selection.h"
#include "harness/matrix/matrix.h"
#include "harness/publish/run_diff.h"
#include "harness/source/git_sources.h"

namespace bkm {
namespace {

class DiffCommand : public CliCommand {
 public:
  const char* name() const override { return "diff"; }
  const char* summary() const override {
    return "Show what changed between two runs, and which commits lie between them";
  }
  const char* examples() const override {
    return "Cells of both runs correspond if they were requested in the same words; a branch "
           "name may stand for different commits. Where no cell is in the same words, cells of "
           "other versions correspond if nothing else differs. Of cells that are wrong in both "
           "runs, it says which claims were mended. Changes are grouped by cause, with the "
           "commits and packages that changed.\n"
           "Exit 0: every cell that was ok still is. Exit 1: one is red or unsupported now.\n"
           "Examples:\n"
           "  bkm diff runs/yesterday runs/today\n"
           "  bkm diff runs/yesterday runs/today --markdown >> \"$GITHUB_STEP_SUMMARY\"";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("before", before_, "Run directory of the earlier run")->required();
    app.add_option("after", after_, "Run directory of the later run")->required();
    app.add_option("--git-mirror", git_mirror_, kGitMirrorHelp);
    app.add_option("--matrix", matrix_,
                   "Matrix file whose \"sources\" locate further repositories");
    app.add_flag("--allow-partial", allow_partial_, "Accept unfinished runs");
    CLI::Option* json = app.add_flag("--json", json_, "Print as JSON");
    app.add_flag("--markdown", markdown_, "Print as Markdown")->excludes(json);
  }

  absl::StatusOr<int> Run() override {
    SourceCatalog catalog;
    if (!matrix_.empty()) {
      ASSIGN_OR_RETURN(const Matrix matrix, ReadMatrix(matrix_));
      RETURN_IF_ERROR(catalog.Add(matrix.sources, matrix_, "$.sources"));
    }
    std::vector<RunEvidence> runs;
    for (const std::string& run : {before_, after_}) {
      ASSIGN_OR_RETURN(runs.emplace_back(), ReadRunEvidence(run, ".", allow_partial_));
    }
    GitSources sources(catalog, GitMirrorFolder(git_mirror_), CacheDirectory() / "git");
    LockFinder locks(runs, CacheDirectory());
    const RunDiff diff = DiffRuns(runs[0], runs[1], sources, locks);
    Print(json_ ? ToText(ToJson(diff)) : markdown_ ? DiffMarkdown(diff) : DiffText(diff));
    return diff.counts.contains(CellChange::kRegressed) ? kExitVerdictsDiffer : kExitAsExpected;
  }

 private:
  std::string before_;
  std::string after_;
  std::string git_mirror_;
  std::string matrix_;
  bool allow_partial_ = false;
  bool json_ = false;
  bool markdown_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeDiffCommand() { return std::make_unique<DiffCommand>(); }

}  // namespace bkm
