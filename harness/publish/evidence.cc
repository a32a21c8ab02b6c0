// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/evidence.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/runner/run_directory.h"
#include "harness/runner/task.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

std::string WrittenAt(const fs::path& file) {
  std::error_code error;
  const fs::file_time_type time = fs::last_write_time(file, error);
  if (error) return "";
  const auto system = std::chrono::file_clock::to_sys(time);
  return absl::FormatTime(
      absl::RFC3339_sec,
      absl::FromChrono(std::chrono::time_point_cast<std::chrono::system_clock::duration>(system)),
      absl::UTCTimeZone());
}

Evidence EvidenceOf(const RunEvidence& run, const CellRecord& cell, const std::string& measured) {
  return {.run = run.published.dir,
          .dir = cell.dir,
          .measured = measured.substr(0, 10),
          .cost = cell.cost,
          .verdict = OutlineOf(*cell.verdict)};
}

bool IsFolder(const std::optional<SubjectSpec>& subject) {
  return subject && subject->source == SourceKind::kPath;
}

bool SameVerdict(const Verdict& a, const Verdict& b) {
  return a.kind == b.kind && a.stage == b.stage && a.reason == b.reason;
}

// A cell that ran and could not be judged: nobody knows today what an older run knew.
bool IsMeasurement(const Evidence& evidence) {
  return SaysSomething(evidence.verdict) ||
         (evidence.verdict.kind == VerdictKind::kUnsupported && evidence.cost.seconds > 0);
}

void Join(MergedCell found, MergedCell& cell) {
  if (Replaces(found.evidence, found.measured_at, cell.evidence, cell.measured_at))
    std::swap(found, cell);
  KeepOlder(std::move(found), cell);
}

}  // namespace

bool Replaces(const Evidence& found, const std::string& found_at, const Evidence& known,
              const std::string& known_at) {
  const bool is_measured = IsMeasurement(found);
  return is_measured != IsMeasurement(known) ? is_measured : found_at >= known_at;
}

void AddContradictions(std::vector<Evidence> older, const Evidence& won,
                       std::vector<Evidence>& contradicted_by) {
  for (Evidence& evidence : older) {
    if (SaysSomething(evidence.verdict)) contradicted_by.push_back(std::move(evidence));
  }
  std::erase_if(contradicted_by, [&](const Evidence& evidence) {
    return SameVerdict(evidence.verdict, won.verdict);
  });
}

absl::StatusOr<RunEvidence> ReadRunEvidence(const fs::path& root, const fs::path& table_folder,
                                            bool allow_partial) {
  const RunDirectory directory(root);
  ASSIGN_OR_RETURN(RunRecord record, directory.ReadRun());
  if (!record.finished && !allow_partial) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory.run_json().string(),
                     ": this run is not finished: repeat the bkm run to finish it, or "
                     "publish it with --allow-partial"));
  }
  PublishedRun published{.dir = fs::absolute(root).lexically_normal().lexically_relative(
                             fs::absolute(table_folder).lexically_normal()),
                         .matrix = record.matrix,
                         .finished = record.finished,
                         .cell_code = TextOf(record.made_by, "cell_code"),
                         .cells = static_cast<int>(record.cells.size())};
  // A trailing slash does not change the folder.
  while (published.dir.size() > 1 && published.dir.back() == '/') published.dir.pop_back();
  return RunEvidence{root, std::move(published), std::move(record)};
}

std::string MeasuredAt(const RunEvidence& run, const CellRecord& cell) {
  if (!cell.measured.empty()) return cell.measured;
  const RunDirectory directory(run.root);
  const std::string written = WrittenAt(directory.cell(cell) / "observation.json");
  return written.empty() ? WrittenAt(directory.run_json()) : written;
}

MergedEvidence Merge(const std::vector<RunEvidence>& runs) {
  MergedEvidence merged;
  std::map<std::string, size_t> places;        // id -> index in merged.cells
  std::map<std::string, MergedCell> controls;  // by ControlKey
  for (const RunEvidence& run : runs) {
    for (const CellRecord& cell : run.record.cells) {
      if (!cell.verdict || cell.role == CellRole::kRepeat || cell.role == CellRole::kTwin) continue;
      if (!cell.cell.plant.empty()) {
        ++merged.planted;
        continue;
      }
      if (IsFolder(cell.cell.engine_subject) || IsFolder(cell.cell.library_subject)) {
        ++merged.folders;
        continue;
      }
      const std::string at = MeasuredAt(run, cell);
      MergedCell found{
          .record = &cell, .run = &run, .measured_at = at, .evidence = EvidenceOf(run, cell, at)};
      if (cell.cell.is_control()) {
        const auto [it, is_new] = controls.emplace(ControlKey(cell), found);
        if (!is_new) Join(std::move(found), it->second);
        continue;
      }
      const auto [it, is_new] = places.emplace(cell.id, merged.cells.size());
      if (is_new) {
        merged.cells.push_back(std::move(found));
      } else {
        Join(std::move(found), merged.cells[it->second]);
      }
    }
  }
  for (auto& [key, control] : controls) merged.controls.emplace(key, std::move(control.evidence));
  return merged;
}

}  // namespace bkm
