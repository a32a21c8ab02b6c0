// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <optional>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/baseline_folder.h"
#include "harness/cli/console.h"
#include "harness/cli/selection.h"
#include "harness/report/labels.h"
#include "harness/session/acceptance.h"

namespace bkm {
namespace {

class AcceptCommand : public CliCommand {
 public:
  const char* name() const override { return "accept"; }
  const char* summary() const override { return "Accept a run as the baseline for later runs"; }
  const char* examples() const override {
    return "A new cell is accepted. A cell that is bit-equal or within the floor keeps its "
           "accepted run, so that noise never moves the baseline. A cell that really changed is "
           "accepted only together with the commit that changed it (--moved-by); that commit is "
           "recorded as stated, not as proven.\n"
           "With --expect, the command rewrites a file of expected failures instead, and leaves "
           "the baseline alone. The baseline records the numbers of each cell; expectations "
           "record which cells fail and why. Comments, order and valid lines stay. Lines for "
           "cells that pass or no longer exist are removed. New failures are added at the end, "
           "with their message as the reason; replace it by a better one.\n"
           "Exit 0: every cell is accepted. Exit 1: some cells are refused.\n"
           "Examples:\n"
           "  bkm accept runs/bkm\n"
           "  bkm accept runs/bkm --filter attention=flex --moved-by git:torchtitan@3396a4b "
           "--because 'fused QKV is the default'\n"
           "  bkm accept runs/quickstart --expect matrices/quickstart.expect.txt";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("run", run_, "Run directory")->required();
    app.add_option("--baseline", baseline_, kBaselineHelp);
    app.add_option("--filter", filters_,
                   "Only cells that match every key=glob, for example attention=flex");
    app.add_option("--moved-by", moved_by_, "Upstream commit that changed the cells: git:NAME@REV");
    app.add_option("--because", because_, "Why the commit changed them; recorded");
    app.add_option("--git-mirror", git_mirror_, kGitMirrorHelp);
    app.add_option("--expect", expect_, "File of expected failures to rewrite");
  }

  absl::StatusOr<int> Run() override {
    const RunDirectory directory(run_);
    ASSIGN_OR_RETURN(const RunRecord run, directory.ReadRun());
    if (!run.finished)
      return absl::FailedPreconditionError(
          absl::StrCat(directory.run_json().string(),
                       ": this run is not finished: run the same bkm run command again"));
    if (!expect_.empty()) return RewriteExpectations(run);
    std::vector<CellFilter> filters;
    for (const std::string& text : filters_) {
      ASSIGN_OR_RETURN(filters.emplace_back(), CellFilter::Parse(text));
    }
    const SourceCatalog catalog;
    GitSources sources(catalog, GitMirrorFolder(git_mirror_), CacheDirectory() / "git");
    std::optional<StatedMover> mover;
    if (!moved_by_.empty()) {
      ASSIGN_OR_RETURN(mover, StatedMover::Find(moved_by_, because_, sources));
    }
    ASSIGN_OR_RETURN(Baseline baseline,
                     Baseline::Read(BaselineFolder(baseline_, run_, run.matrix)));
    ASSIGN_OR_RETURN(const Acceptance acceptance,
                     AcceptRun(directory, run, filters, mover, baseline));
    for (const std::string& refused : acceptance.refused) PrintErrorf("%s\n", refused);
    Printf("%s: %d accepted, %d unchanged, %zu refused\n", baseline.folder().c_str(),
           acceptance.taken, acceptance.kept, acceptance.refused.size());
    return acceptance.refused.empty() ? kExitAsExpected : kExitVerdictsDiffer;
  }

 private:
  absl::StatusOr<int> RewriteExpectations(const RunRecord& run) const {
    if (!filters_.empty() || !moved_by_.empty())
      return absl::InvalidArgumentError(
          "--expect needs the whole run: remove --filter and --moved-by");
    ASSIGN_OR_RETURN(const int differences, AcceptExpectations(run_, run, expect_));
    Printf("%s: %d differences accepted\n", expect_.c_str(), differences);
    return kExitAsExpected;
  }

  std::string run_;
  std::string baseline_;
  std::vector<std::string> filters_;
  std::string moved_by_;
  std::string because_;
  std::string expect_;
  std::string git_mirror_;
};

}  // namespace

std::unique_ptr<CliCommand> MakeAcceptCommand() { return std::make_unique<AcceptCommand>(); }

}  // namespace bkm
