// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/baseline.h"

#include <array>
#include <map>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/folder_reader.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"
#include "harness/runner/references.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr std::array<absl::string_view, 7> kNames = {
    "new", "bit-equal", "within-floor", "real", "verdict-changed", "same", "unsettled"};

std::string SubjectText(const std::optional<SubjectSpec>& subject) {
  return subject ? subject->ToString() : "";
}

Json ToJson(const AcceptedCell& cell) {
  Json movers = Json::array();
  for (const Mover& mover : cell.moved_by) {
    movers.push_back({{"commit", mover.commit},
                      {"because", mover.because},
                      {"proof", mover.proof},
                      {"range", mover.range}});
  }
  return {{"engine_subject", cell.engine_subject},
          {"library_subject", cell.library_subject},
          {"lock", cell.lock},
          {"golden", cell.golden},
          {"verdict", cell.verdict},
          {"stage", cell.stage},
          {"reason", cell.reason},
          {"numbers", cell.numbers},
          {"moved_by", movers}};
}

absl::StatusOr<AcceptedCell> AcceptedCellFromJson(const Json& json, const std::string& origin,
                                                  const std::string& path) {
  ObjectReader reader(json, origin, path);
  AcceptedCell cell;
  cell.engine_subject = reader.String("engine_subject", "");
  cell.library_subject = reader.String("library_subject", "");
  cell.lock = reader.String("lock", "");
  cell.golden = reader.String("golden", "");
  cell.verdict = reader.String("verdict");
  cell.stage = reader.String("stage", "");
  cell.reason = reader.String("reason", "");
  cell.numbers = reader.String("numbers", "");
  reader.ForEach("moved_by", [&](const Json& item, const std::string& at) -> absl::Status {
    ObjectReader inner(item, origin, at);
    Mover& mover = cell.moved_by.emplace_back();
    mover.commit = inner.String("commit");
    mover.because = inner.String("because", "");
    mover.proof = inner.OneOf("proof", {"stated", "bisect"});
    mover.range = inner.OneOf("range", {"inside", "unknown"});
    return inner.Finish();
  });
  RETURN_IF_ERROR(reader.Finish());
  return cell;
}

bool IsSettled(const CellRecord& cell) {
  return cell.verdict && cell.verdict->kind != VerdictKind::kSpurious && !cell.is_flaky();
}

// A digest of the names and contents of a folder's files.
absl::StatusOr<std::string> DigestOf(const fs::path& folder) {
  std::map<std::string, std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (!entry.is_regular_file(error) || entry.is_symlink(error)) continue;
    ASSIGN_OR_RETURN(files[entry.path().filename()], Sha256OfFile(entry.path()));
  }
  std::string text;
  for (const auto& [name, sha256] : files) absl::StrAppend(&text, sha256, " ", name, "\n");
  return Sha256(text);
}

// The tensor files of a cell. What else a subject left beside them is not copied.
absl::Status CopyTensors(const fs::path& cell_dir, const fs::path& to) {
  constexpr size_t kMostFiles = 20'000;
  constexpr int64_t kLargest = 64 << 20;
  RETURN_IF_ERROR(RemoveTree(to));
  RETURN_IF_ERROR(CreateDirectories(to));
  const FolderReader reader(cell_dir);
  ASSIGN_OR_RETURN(const auto entries, reader.List("tensors", kMostFiles));
  for (const FolderReader::Entry& entry : entries) {
    if (!entry.is_regular || entry.bytes > kLargest) continue;
    ASSIGN_OR_RETURN(const std::string bytes, reader.Read("tensors/" + entry.name, kLargest));
    RETURN_IF_ERROR(WriteFile(to / entry.name, bytes));
  }
  return absl::OkStatus();
}

// Classifies a cell with an unchanged verdict by its numbers.
absl::StatusOr<CellMovement> CompareNumbers(const Baseline& baseline, const AcceptedCell& accepted,
                                            RunJudge& judge, CellMovement movement) {
  if (accepted.numbers.empty() || !HasNumbers(*movement.cell->verdict)) {
    movement.movement = Movement::kSame;
    return movement;
  }
  const absl::StatusOr<Drift> drift =
      judge.DriftBetween(*movement.cell, baseline.folder() / accepted.numbers);
  if (!drift.ok()) {
    return WithContext(drift.status(),
                       absl::StrCat("cannot compare the numbers of ", movement.name));
  }
  movement.multiple = drift->multiple;
  movement.what = drift->where;
  switch (drift->kind) {
    case DriftClass::kBitEqual:
      movement.movement = Movement::kBitEqual;
      break;
    case DriftClass::kWithinFloor:
      movement.movement = Movement::kWithinFloor;
      break;
    case DriftClass::kReal:
      movement.movement = Movement::kReal;
      break;
  }
  return movement;
}

}  // namespace

absl::string_view Name(Movement movement) { return kNames[static_cast<size_t>(movement)]; }

std::string TrackName(const Cell& cell) {
  Cell tracked = cell;
  tracked.lock.clear();
  if (tracked.engine_subject) tracked.engine_subject->revision = cell.engine_label;
  if (tracked.library_subject) tracked.library_subject->revision = cell.library_label;
  return CellId(tracked);
}

absl::StatusOr<Baseline> Baseline::Read(const fs::path& folder) {
  Baseline baseline(folder);
  const fs::path path = folder / "accepted.json";
  std::error_code error;
  if (!fs::exists(path, error)) return baseline;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(const Json json, ParseJson(text, path.string()));
  ObjectReader reader(json, path.string());
  reader.Int("schema", 1, 1, 1);
  if (const Json* cells = reader.Child("cells"); cells && cells->is_object()) {
    for (const auto& [name, item] : cells->items()) {
      ASSIGN_OR_RETURN(baseline.cells_[name],
                       AcceptedCellFromJson(item, path.string(), absl::StrCat("cells.", name)));
    }
  } else {
    reader.Fail("cells", "an object is needed here");
  }
  RETURN_IF_ERROR(reader.Finish());
  return baseline;
}

absl::Status Baseline::Accept(const RunDirectory& run, const CellRecord& cell,
                              std::optional<Mover> mover) {
  const std::string name = TrackName(cell.cell);
  AcceptedCell accepted = {.engine_subject = SubjectText(cell.cell.engine_subject),
                           .library_subject = SubjectText(cell.cell.library_subject),
                           .lock = cell.lock,
                           .golden = GoldenFile(cell.cell.probe),
                           .verdict = std::string(Name(cell.verdict->kind)),
                           .stage = std::string(Name(cell.verdict->stage)),
                           .reason = cell.verdict->reason,
                           .moved_by = cells_[name].moved_by};
  if (accepted.library_subject.empty()) accepted.library_subject = cell.library_version;
  if (mover) accepted.moved_by.push_back(*std::move(mover));
  const fs::path tensors = run.cell(cell) / "tensors";
  std::error_code error;
  if (HasNumbers(*cell.verdict) && fs::exists(tensors, error)) {
    // A folder of its own for other numbers: until accepted.json is replaced, the old ones count.
    ASSIGN_OR_RETURN(const std::string content, DigestOf(tensors));
    accepted.numbers = absl::StrCat("cells/", Sha256(absl::StrCat(name, content)).substr(0, 16));
    if (!fs::exists(folder_ / accepted.numbers, error)) {
      RETURN_IF_ERROR(
          CopyTensors(run.cell(cell), folder_ / (accepted.numbers + ".new") / "tensors"));
      fs::rename(folder_ / (accepted.numbers + ".new"), folder_ / accepted.numbers, error);
      if (error) {
        return absl::UnavailableError(absl::StrCat(
            "cannot create ", (folder_ / accepted.numbers).string(), ": ", error.message()));
      }
    }
  }
  cells_[name] = std::move(accepted);
  return absl::OkStatus();
}

absl::Status Baseline::Write() const {
  Json cells = Json::object();
  for (const auto& [name, cell] : cells_) cells[name] = ToJson(cell);
  RETURN_IF_ERROR(CreateDirectories(folder_));
  RETURN_IF_ERROR(SyncTree(folder_));
  RETURN_IF_ERROR(
      WriteFile(folder_ / "accepted.json", ToText(Json{{"schema", 1}, {"cells", cells}})));
  return RemoveUnused();
}

absl::Status Baseline::RemoveUnused() const {
  std::set<std::string> used;
  for (const auto& [name, cell] : cells_) used.insert(cell.numbers);
  std::vector<fs::path> unused;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_ / "cells", error)) {
    if (!used.contains(absl::StrCat("cells/", entry.path().filename().string())))
      unused.push_back(entry.path());
  }
  for (const fs::path& path : unused) RETURN_IF_ERROR(RemoveTree(path));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CellMovement>> CompareWithBaseline(const Baseline& baseline,
                                                              const RunRecord& run,
                                                              RunJudge& judge) {
  std::vector<CellMovement> movements;
  for (const CellRecord& cell : run.cells) {
    if (cell.role != CellRole::kSubject) continue;
    CellMovement movement{.cell = &cell, .name = TrackName(cell.cell)};
    const auto accepted = baseline.cells().find(movement.name);
    if (!IsSettled(cell)) {
      movement.movement = Movement::kUnsettled;
    } else if (accepted == baseline.cells().end() ||
               accepted->second.golden != GoldenFile(cell.cell.probe)) {
      movement.movement = Movement::kNew;
    } else if (const std::string before = ShortText(
                   accepted->second.verdict, accepted->second.stage, accepted->second.reason),
               now = ShortText(*cell.verdict);
               before != now) {
      movement.movement = Movement::kVerdictChanged;
      movement.what = absl::StrCat(before, " -> ", now);
    } else {
      ASSIGN_OR_RETURN(movement,
                       CompareNumbers(baseline, accepted->second, judge, std::move(movement)));
    }
    movements.push_back(std::move(movement));
  }
  return movements;
}

}  // namespace bkm
