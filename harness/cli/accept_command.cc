// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/cli/baseline_folder.h"
#include "harness/cli/command.h"
#include "harness/cli/selection.h"
#include "harness/report/expectations.h"
#include "harness/report/labels.h"
#include "harness/runner/baseline.h"
#include "harness/source/git_sources.h"

namespace bkm {
namespace {

class AcceptCommand : public CliCommand {
 public:
  const char* name() const override { return "accept"; }
  const char* summary() const override {
    return "Accept a run as what later runs are compared with";
  }
  const char* examples() const override {
    return "A cell that is new is taken. A cell that is bit-equal or within the floor keeps its "
           "accepted run: noise never moves it.\n"
           "A cell that really moved is taken only with the commit that moved it, which is noted "
           "as stated, not proven.\n"
           "Exit 1: some cells were not taken.\n"
           "With --expect, it rewrites a file of known red cells instead, and leaves accepted runs "
           "alone: those say which numbers a cell had, this which cells are red and why. Comments "
           "and order are kept; lines that still hold stay as they are; lines of cells that pass "
           "or are gone are taken out; new red cells come last, with their message for a reason, "
           "which is yours to better.\n"
           "Examples:\n"
           "  bkm accept runs/bkm\n"
           "  bkm accept runs/bkm --filter attention=flex --moved-by git:torchtitan@3396a4b "
           "--because 'fused QKV is the default'\n"
           "  bkm accept runs/quickstart --expect matrices/quickstart.expect.txt";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("run", run_, "Run directory")->required();
    app.add_option("--baseline", baseline_, kBaselineHelp);
    app.add_option("--filter", filters_, "Only cells that match: key=pattern,key=pattern");
    app.add_option("--moved-by", moved_by_,
                   "The upstream commit that moved the cells: git:NAME@REV");
    app.add_option("--because", because_, "Why it moved them, for the record");
    app.add_option("--git-mirror", git_mirror_, kGitMirrorHelp);
    app.add_option("--expect", expect_, "Rewrite this file of known red cells, and nothing else");
  }

  absl::StatusOr<int> Run() override {
    const RunDirectory directory(run_);
    ASSIGN_OR_RETURN(const RunRecord run, directory.ReadRun());
    if (!run.finished)
      return absl::FailedPreconditionError(
          absl::StrCat(directory.run_json().string(),
                       ": this run is not finished; the same bkm run finishes it"));
    if (!expect_.empty()) return RewriteExpectations(run);
    std::vector<CellFilter> filters;
    for (const std::string& text : filters_) {
      ASSIGN_OR_RETURN(filters.emplace_back(), CellFilter::Parse(text));
    }
    if (!moved_by_.empty()) RETURN_IF_ERROR(FindMover());
    ASSIGN_OR_RETURN(Baseline baseline,
                     Baseline::Read(BaselineFolder(baseline_, run_, run.matrix)));
    RunJudge judge(directory);
    ASSIGN_OR_RETURN(const std::vector<CellMovement> movements,
                     CompareWithBaseline(baseline, run, judge));
    int taken = 0, kept = 0, refused = 0;
    for (const CellMovement& movement : movements) {
      const bool asked =
          filters.empty() || std::any_of(filters.begin(), filters.end(), [&](const CellFilter& f) {
            return f.Matches(movement.cell->cell);
          });
      if (!asked) continue;
      ASSIGN_OR_RETURN(const Outcome outcome, Take(movement, directory, baseline));
      ++(outcome == Outcome::kTaken ? taken : outcome == Outcome::kKept ? kept : refused);
    }
    RETURN_IF_ERROR(baseline.Write());
    std::printf("%s: %d taken, %d kept as they were, %d refused\n", baseline.folder().c_str(),
                taken, kept, refused);
    return refused > 0 ? kExitVerdictsDiffer : kExitAsExpected;
  }

 private:
  absl::StatusOr<int> RewriteExpectations(const RunRecord& run) const {
    if (!filters_.empty() || !moved_by_.empty())
      return absl::InvalidArgumentError(
          "--expect goes by the whole run: leave --filter and --moved-by out");
    if (!run.made_by.value("whole", false))
      return absl::FailedPreconditionError(
          absl::StrCat(run_,
                       " is a run of a part of its matrix: expectations are rewritten by a "
                       "whole one (bkm run without --filter)"));
    std::error_code error;
    const bool is_new = !std::filesystem::exists(expect_, error);
    ASSIGN_OR_RETURN(const Expectations before,
                     is_new ? Expectations::Parse("", expect_) : Expectations::Read(expect_));
    const size_t surprises = before.Compare(run, /*whole=*/true).size();
    RETURN_IF_ERROR(WriteFile(expect_, before.Rewritten(run)));
    std::printf("%s: %zu differences taken\n", expect_.c_str(), surprises);
    return kExitAsExpected;
  }

  enum class Outcome { kTaken, kKept, kRefused };

  absl::StatusOr<Outcome> Take(const CellMovement& movement, const RunDirectory& directory,
                               Baseline& baseline) const {
    switch (movement.movement) {
      case Movement::kNew:
        RETURN_IF_ERROR(baseline.Accept(directory, *movement.cell, std::nullopt));
        return Outcome::kTaken;
      case Movement::kBitEqual:
      case Movement::kWithinFloor:
      case Movement::kSame:
        return Outcome::kKept;
      case Movement::kUnsettled:
        Say(movement, "it is pending, spurious or flaky: run it again first");
        return Outcome::kRefused;
      case Movement::kReal:
      case Movement::kVerdictChanged:
        break;
    }
    if (moved_by_.empty()) {
      Say(movement, absl::StrCat("it moved (", movement.what,
                                 "): name the upstream commit that "
                                 "moved it with --moved-by git:NAME@REV"));
      return Outcome::kRefused;
    }
    const AcceptedCell& before = baseline.cells().at(movement.name);
    ASSIGN_OR_RETURN(const std::string range, RangeOf(before, *movement.cell));
    if (range.empty()) {
      Say(movement, absl::StrCat(mover_.ToString(),
                                 " does not lie between the accepted version "
                                 "and this one: it cannot have moved it"));
      return Outcome::kRefused;
    }
    RETURN_IF_ERROR(baseline.Accept(
        directory, *movement.cell,
        Mover{
            .commit = mover_.ToString(), .because = because_, .proof = "stated", .range = range}));
    return Outcome::kTaken;
  }

  static void Say(const CellMovement& movement, const std::string& what) {
    std::fprintf(stderr, "%s\n",
                 Printable(absl::StrCat(CellLabel(*movement.cell), ": ", what)).c_str());
  }

  absl::Status FindMover() {
    ASSIGN_OR_RETURN(mover_, ParseSubjectSpec(moved_by_));
    if (mover_.source != SourceKind::kGit)
      return absl::InvalidArgumentError(
          absl::StrCat("--moved-by '", moved_by_, "': a commit is needed, as git:NAME@REV"));
    sources_.emplace(catalog_, GitMirrorFolder(git_mirror_), CacheDirectory() / "git");
    ASSIGN_OR_RETURN(const GitSources::Found found, sources_->Find(mover_.name, mover_.revision));
    mover_.revision = found.commit;
    return absl::OkStatus();
  }

  // "inside" or "unknown" as Mover::range has it; empty: the commit is not between the two
  // versions.
  absl::StatusOr<std::string> RangeOf(const AcceptedCell& before, const CellRecord& now) const {
    const auto of_mover = [&](const std::string& text) -> std::optional<SubjectSpec> {
      const absl::StatusOr<SubjectSpec> spec = ParseSubjectSpec(text);
      if (spec.ok() && spec->name == mover_.name) return *spec;
      return std::nullopt;
    };
    for (const auto& [old_text, subject] :
         {std::pair(before.engine_subject, now.cell.engine_subject),
          std::pair(before.library_subject, now.cell.library_subject)}) {
      const std::optional<SubjectSpec> old_spec = of_mover(old_text);
      if (!old_spec || !subject || subject->name != mover_.name) continue;
      if (old_spec->source != SourceKind::kGit || subject->source != SourceKind::kGit)
        return std::string(old_text == subject->ToString() ? "" : "unknown");
      return IsBetween(old_spec->revision, subject->revision);
    }
    return std::string();
  }

  absl::StatusOr<std::string> IsBetween(const std::string& before, const std::string& now) const {
    ASSIGN_OR_RETURN(const GitSources::Found found, sources_->Find(mover_.name, now));
    // Commits that are reachable from the new version and not from the old one.
    ASSIGN_OR_RETURN(const std::string commits,
                     found.repository.Output({"rev-list", now, absl::StrCat("^", before)}));
    return std::string(commits.find(mover_.revision) == std::string::npos ? "" : "inside");
  }

  std::string run_;
  std::string baseline_;
  std::vector<std::string> filters_;
  std::string moved_by_;
  std::string because_;
  std::string expect_;
  std::string git_mirror_;
  SubjectSpec mover_;
  SourceCatalog catalog_;
  mutable std::optional<GitSources> sources_;
};

}  // namespace

std::unique_ptr<CliCommand> MakeAcceptCommand() { return std::make_unique<AcceptCommand>(); }

}  // namespace bkm
