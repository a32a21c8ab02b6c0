// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/session/acceptance.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/report/expectations.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

std::string RefusalOf(const CellMovement& movement, const std::string& why) {
  return absl::StrCat(CellLabel(*movement.cell), ": ", why);
}

absl::Status Take(const CellMovement& movement, const RunDirectory& directory,
                  const std::optional<StatedMover>& mover, Baseline& baseline,
                  Acceptance& acceptance) {
  switch (movement.movement) {
    case Movement::kNew:
      ++acceptance.taken;
      return baseline.Accept(directory, *movement.cell, std::nullopt);
    case Movement::kBitEqual:
    case Movement::kWithinFloor:
    case Movement::kSame:
      ++acceptance.kept;
      return absl::OkStatus();
    case Movement::kUnsettled:
      acceptance.refused.push_back(
          RefusalOf(movement, "pending, spurious or flaky: run it again first"));
      return absl::OkStatus();
    case Movement::kReal:
    case Movement::kVerdictChanged:
      break;
  }
  if (!mover) {
    acceptance.refused.push_back(RefusalOf(
        movement, absl::StrCat("it changed (", movement.what,
                               "): name the upstream commit that changed it with --moved-by "
                               "git:NAME@REV")));
    return absl::OkStatus();
  }
  const AcceptedCell& before = baseline.cells().at(movement.name);
  ASSIGN_OR_RETURN(const std::optional<Mover> moved_by, mover->MoverOf(before, *movement.cell));
  if (!moved_by) {
    acceptance.refused.push_back(
        RefusalOf(movement, absl::StrCat(mover->ToString(),
                                         " does not lie between the accepted version and this one: "
                                         "it cannot have changed the cell")));
    return absl::OkStatus();
  }
  ++acceptance.taken;
  return baseline.Accept(directory, *movement.cell, moved_by);
}

}  // namespace

absl::StatusOr<StatedMover> StatedMover::Find(const std::string& spec, const std::string& because,
                                              GitSources& sources) {
  ASSIGN_OR_RETURN(SubjectSpec commit, ParseSubjectSpec(spec));
  if (commit.source != SourceKind::kGit)
    return absl::InvalidArgumentError(
        absl::StrCat("--moved-by '", spec, "': name a commit as git:NAME@REV"));
  ASSIGN_OR_RETURN(const GitSources::Found found, sources.Find(commit.name, commit.revision));
  commit.revision = found.commit;
  return StatedMover(std::move(commit), because, sources);
}

absl::StatusOr<std::optional<Mover>> StatedMover::MoverOf(const AcceptedCell& before,
                                                          const CellRecord& now) const {
  ASSIGN_OR_RETURN(const std::string range, RangeOf(before, now));
  if (range.empty()) return std::nullopt;
  return Mover{
      .commit = commit_.ToString(), .because = because_, .proof = "stated", .range = range};
}

absl::StatusOr<std::string> StatedMover::RangeOf(const AcceptedCell& before,
                                                 const CellRecord& now) const {
  for (const auto& [text, subject] :
       {std::pair(before.engine_subject, now.cell.engine_subject),
        std::pair(before.library_subject, now.cell.library_subject)}) {
    const absl::StatusOr<SubjectSpec> accepted = ParseSubjectSpec(text);
    if (!accepted.ok() || accepted->name != commit_.name) continue;
    if (!subject || subject->name != commit_.name) continue;
    if (accepted->source != SourceKind::kGit || subject->source != SourceKind::kGit)
      return std::string(text == subject->ToString() ? "" : "unknown");
    ASSIGN_OR_RETURN(const GitSources::Found found,
                     sources_->Find(commit_.name, subject->revision));
    // Commits that the new version reaches and the accepted one does not.
    ASSIGN_OR_RETURN(const std::string commits,
                     found.repository.Output(
                         {"rev-list", subject->revision, absl::StrCat("^", accepted->revision)}));
    return std::string(commits.find(commit_.revision) == std::string::npos ? "" : "inside");
  }
  return std::string();
}

absl::StatusOr<Acceptance> AcceptRun(const RunDirectory& directory, const RunRecord& run,
                                     const std::vector<CellFilter>& filters,
                                     const std::optional<StatedMover>& mover, Baseline& baseline) {
  RunJudge judge(directory);
  ASSIGN_OR_RETURN(const std::vector<CellMovement> movements,
                   CompareWithBaseline(baseline, run, judge));
  Acceptance acceptance;
  for (const CellMovement& movement : movements) {
    const bool asked =
        filters.empty() || std::any_of(filters.begin(), filters.end(), [&](const CellFilter& f) {
          return f.Matches(movement.cell->cell);
        });
    if (asked) RETURN_IF_ERROR(Take(movement, directory, mover, baseline, acceptance));
  }
  RETURN_IF_ERROR(baseline.Write());
  return acceptance;
}

absl::StatusOr<int> AcceptExpectations(const std::string& run_directory, const RunRecord& run,
                                       const std::filesystem::path& file) {
  if (!IsTrue(run.made_by, "whole"))
    return absl::FailedPreconditionError(
        absl::StrCat(run_directory,
                     " is a filtered run: only a whole run can rewrite expectations (bkm run "
                     "without --filter)"));
  std::error_code error;
  const bool is_new = !std::filesystem::exists(file, error);
  ASSIGN_OR_RETURN(const Expectations before,
                   is_new ? Expectations::Parse("", file.string()) : Expectations::Read(file));
  const size_t differences = before.Compare(run, /*whole=*/true).size();
  RETURN_IF_ERROR(WriteFile(file, before.Rewritten(run)));
  return static_cast<int>(differences);
}

}  // namespace bkm
