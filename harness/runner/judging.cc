// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/judging.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/files.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/judge/case_file.h"
#include "harness/judge/judge.h"
#include "harness/judge/reasons.h"
#include "harness/model/dealing.h"
#include "harness/model/engine_kind.h"
#include "harness/model/observation.h"
#include "harness/report/table.h"
#include "harness/runner/references.h"
#include "harness/runner/repeats.h"
#include "harness/runner/task.h"
#include "harness/store/checksums.h"

namespace bkm {
namespace {

// A fixture has no golden: only its ending is judged.
Verdict JudgeByEndingOnly(const JudgeInput& input) {
  if (input.observation->ending.kind != EndingKind::kCompleted) return Judge(input);
  return {.kind = VerdictKind::kOk,
          .stage = Stage::kGolden,
          .message = "came to its end; its numbers are not judged"};
}

Packages PackagesOf(const std::optional<Json>& request, const Cell& cell) {
  const EngineKind* kind = FindEngineKind(cell.engine);
  const Json none;
  const Json& packages = ObjectOf(request ? *request : none, "packages");
  return {.engine = !cell.engine_subject ? "" : TextOf(packages, "engine", kind->engine_source),
          .library = TextOf(packages, "library", kind->library_source)};
}

// The files of a measured cell.
struct CellFiles {
  CellFacts facts;
  std::optional<Json> request;

  const Json* lines() const { return facts.lines().is_null() ? nullptr : &facts.lines(); }
};

// Absent if the cell was not measured.
absl::StatusOr<std::optional<CellFiles>> ReadCellFiles(const RunDirectory& directory,
                                                       const CellRecord& cell) {
  ASSIGN_OR_RETURN(std::optional<CellFacts> facts, directory.ReadObservation(cell));
  if (!facts) return std::optional<CellFiles>();
  CellFiles files{.facts = *std::move(facts)};
  ASSIGN_OR_RETURN(files.request, directory.ReadRequest(cell));
  return std::optional<CellFiles>(std::move(files));
}

// A damaged file affects its own cell only: the other cells are judged as usual.
Verdict Unreadable(const absl::Status& why) {
  return {.kind = VerdictKind::kUnsupported,
          .stage = Stage::kResolve,
          .reason = reason::kEvidenceUnreadable,
          .message = absl::StrCat(why.message(), "; the same bkm run measures it again"),
          .blame = {"harness"}};
}

// The runner could not write this cell's folder. What lies there, if anything, is of an earlier
// run.
bool HasNoFolder(const CellRecord& cell) {
  return cell.verdict && cell.verdict->kind == VerdictKind::kSpurious &&
         (cell.verdict->reason == reason::kFolderUnwritable ||
          (cell.verdict->reason == reason::kDiskFull && cell.verdict->stage == Stage::kResolve));
}

bool IsComplete(const ReferenceData& evidence) {
  return evidence.golden.ok() && std::all_of(evidence.floors.begin(), evidence.floors.end(),
                                             [](const auto& floor) { return floor.second.ok(); });
}

}  // namespace

const ReferenceData* RunJudge::EvidenceFor(const Probe& probe,
                                           const std::vector<std::string>& precisions) {
  std::map<std::string, std::filesystem::path> floors;
  for (const std::string& precision : precisions)
    floors.emplace(precision, directory_.reference(FloorFile(probe, precision)));
  std::unique_ptr<ReferenceData>& evidence =
      evidence_[FloorFile(probe, absl::StrJoin(precisions, "+"))];
  // A golden or floor that was missing may have been computed since.
  if (!evidence || !IsComplete(*evidence)) {
    const std::filesystem::path folder = directory_.probe(ProbeKey(probe));
    const std::filesystem::path golden = directory_.reference(GoldenFile(probe));
    evidence = std::make_unique<ReferenceData>(ReadReferenceData(folder, golden, floors));
    // Damaged references make cells unsupported, never wrong.
    if (const absl::Status sound = VerifyManifest(folder); absl::IsDataLoss(sound))
      evidence->folder = sound;
    if (const absl::Status sound = VerifySealedFile(golden); absl::IsDataLoss(sound))
      evidence->golden = sound;
    if (const absl::Status lack = LackOf(golden); !lack.ok()) evidence->golden = lack;
    for (const auto& [precision, floor] : floors) {
      if (const absl::Status sound = VerifySealedFile(floor); absl::IsDataLoss(sound))
        evidence->floors.insert_or_assign(precision, sound);
      if (const absl::Status lack = LackOf(floor); !lack.ok())
        evidence->floors.insert_or_assign(precision, lack);
    }
  }
  return evidence.get();
}

absl::Status RunJudge::Verify(const CellRecord& cell) {
  // Once per version of the manifest: a run judges each cell several times.
  const std::filesystem::path folder = directory_.cell(cell);
  std::error_code error;
  const auto written = std::filesystem::last_write_time(folder / kManifestFile, error);
  const auto verified = verified_.find(folder);
  if (!error && verified != verified_.end() && verified->second == written) return absl::OkStatus();
  const absl::Status status = directory_.VerifyCell(cell);
  // VerifyCell finds faults of evidence without checksums, which ReadCellFiles reports, too.
  if (!status.ok() && !absl::IsDataLoss(status)) return absl::OkStatus();
  if (status.ok() && !error) verified_[folder] = written;
  return status;
}

RunJudge::Beside RunJudge::BesideOf(const RunRecord& run, const CellRecord& cell) {
  Beside beside{.control = FindControl(run, cell)};
  if (cell.role != CellRole::kSubject || !cell.cell.plant.empty()) return beside;
  for (const auto& [option, value] : cell.cell.probe.engine_options)
    beside.twins[option] = FindTwin(run, cell, option);
  return beside;
}

absl::StatusOr<std::optional<Verdict>> RunJudge::JudgeWith(const CellRecord& cell,
                                                           const Beside& beside, bool incomplete) {
  const CellRecord* const control = beside.control;
  if (HasNoFolder(cell)) return cell.verdict;
  if (const absl::Status sound = Verify(cell); !sound.ok())
    return std::optional<Verdict>(Unreadable(sound));
  const auto read = ReadCellFiles(directory_, cell);
  if (!read.ok()) return std::optional<Verdict>(Unreadable(read.status()));
  if (!*read) return std::optional<Verdict>();
  const CellFiles& files = **read;
  const Probe probe = AsDealt(cell.cell.probe, files.facts.seen());
  JudgeInput input{.probe = probe,
                   .packages = PackagesOf(files.request, cell.cell),
                   .trainer_drops_last = FindEngineKind(cell.cell.engine)->drops_last,
                   .observation = &files.facts.seen(),
                   .cell_dir = directory_.cell(cell)};
  const EngineKind* kind = FindEngineKind(cell.cell.engine);
  if (kind->judged_by_ending_only) return std::optional<Verdict>(JudgeByEndingOnly(input));
  // Judge without a control that cannot be read.
  const auto control_files = control ? ReadCellFiles(directory_, *control)
                                     : absl::StatusOr<std::optional<CellFiles>>(std::nullopt);
  std::optional<Verdict> control_verdict;
  if (control_files.ok() && *control_files) {
    ASSIGN_OR_RETURN(control_verdict, JudgeWith(*control, {}));
    input.control = &(*control_files)->facts.seen();
    input.control_verdict = &*control_verdict;
  }
  input.lines = files.lines();
  std::vector<std::optional<CellFiles>> twins(beside.twins.size());  // which the input refers to
  for (const auto& [option, twin] : beside.twins) {
    OptionTwin& seen = input.twins.emplace_back(OptionTwin{.option = option});
    auto read_twin = twin ? ReadCellFiles(directory_, *twin)
                          : absl::StatusOr<std::optional<CellFiles>>(std::nullopt);
    if (!read_twin.ok())
      seen.missing =
          absl::StrCat("the cell without it cannot be read: ", read_twin.status().message());
    if (!read_twin.ok() || !*read_twin) continue;
    CellFiles& kept = twins[input.twins.size() - 1].emplace(**std::move(read_twin));
    seen.seen = {&kept.facts.seen(), kept.lines(), directory_.cell(*twin)};
  }
  // After the control: judging it reads a reference of the same probe again that was incomplete.
  input.reference = EvidenceFor(probe, FloorsFor(files.facts.seen(), probe));
  Verdict verdict = Judge(input);
  const bool lacks_reference =
      verdict.kind == VerdictKind::kUnsupported || verdict.reason == reason::kReferenceMissing;
  if (incomplete && lacks_reference && !IsComplete(*input.reference))
    return std::optional<Verdict>();
  return std::optional<Verdict>(std::move(verdict));
}

absl::StatusOr<std::optional<Verdict>> RunJudge::JudgeCell(const RunRecord& run,
                                                           const CellRecord& cell,
                                                           bool incomplete) {
  return JudgeWith(cell, BesideOf(run, cell), incomplete);
}

absl::StatusOr<Drift> RunJudge::DriftBetween(const CellRecord& cell,
                                             const std::filesystem::path& before) {
  ASSIGN_OR_RETURN(const std::optional<CellFiles> now, ReadCellFiles(directory_, cell));
  if (!now) return absl::NotFoundError("it was not measured");
  ASSIGN_OR_RETURN(const std::vector<StepTensors> new_steps,
                   ReadSteps(now->facts.seen().steps, directory_.cell(cell)));
  ASSIGN_OR_RETURN(const std::vector<StepTensors> old_steps,
                   ReadSteps(now->facts.seen().steps, before));
  const Probe probe = AsDealt(cell.cell.probe, now->facts.seen());
  const std::string precision = PrecisionOf(now->facts.seen(), probe);
  const ReferenceData& evidence = *EvidenceFor(probe, {precision});
  RETURN_IF_ERROR(evidence.folder.status());
  const absl::StatusOr<std::vector<FloorStep>>& floor = evidence.floors.at(precision);
  RETURN_IF_ERROR(floor.status());
  return CompareRuns(old_steps, new_steps, *floor, evidence.folder->steps);
}

void RunJudge::JudgeTogether(const RunRecord& run, CellRecord& cell) {
  const std::vector<const CellRecord*> repeats = RepeatsOf(run, cell);
  if (repeats.empty() || !cell.verdict) return;
  auto [verdict, stability] = Together(cell, repeats);
  for (const CellRecord* repeat : repeats) {
    if (!repeat->verdict || !HasNumbers(*repeat->verdict)) continue;
    const absl::StatusOr<Drift> drift = DriftBetween(*repeat, directory_.cell(cell));
    // A run without numbers can only differ in its verdict.
    if (!drift.ok()) continue;
    if (stability.drift.empty() || drift->multiple >= stability.multiple) {
      stability.drift = std::string(Name(drift->kind));
      stability.multiple = drift->multiple;
    }
  }
  cell.verdict = std::move(verdict);
  cell.stability = std::move(stability);
}

absl::Status RunJudge::JudgeRun(RunRecord& run, bool incomplete) {
  for (CellRecord& cell : run.cells) {
    ASSIGN_OR_RETURN(cell.verdict, JudgeWith(cell, BesideOf(run, cell), incomplete));
  }
  for (CellRecord& cell : run.cells) {
    if (cell.role == CellRole::kSubject) JudgeTogether(run, cell);
    // The verdict is in run.json, too: a folder that cannot be written costs its cell nothing more.
    if (!cell.inherited_from && !HasNoFolder(cell)) directory_.WriteVerdict(cell).IgnoreError();
  }
  return WriteResults(run);
}

absl::Status RunJudge::WriteResults(const RunRecord& run) {
  RETURN_IF_ERROR(WriteFile(directory_.table(), TableMarkdown(run)));
  return directory_.WriteRun(run);
}

}  // namespace bkm
