// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/rows.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/civil_time.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/json_facts.h"
#include "harness/model/engine_kind.h"
#include "harness/model/sandbox_level.h"
#include "harness/publish/ranges.h"
#include "harness/report/command_text.h"
#include "harness/report/labels.h"
#include "harness/runner/task.h"

namespace bkm {
namespace {

constexpr size_t kLabelInName = 40;

PublishedVersion LibraryOf(const CellRecord& record, const EngineKind& kind) {
  if (record.cell.library_subject) {
    return {.subject = record.cell.library_subject->ToString(),
            .label = record.cell.library_label,
            .date = record.library_date};
  }
  // A library that the runtime installs has no version if the resolution failed.
  if (record.library_version.empty()) return {.label = "as resolved"};
  return {.subject = absl::StrCat("pypi:", kind.library_source, "==", record.library_version),
          .label = record.library_version,
          .date = record.library_date};
}

PublishedRow RowFor(const MergedCell& merged, const EngineKind& kind) {
  const CellRecord& record = *merged.record;
  PublishedRow row;
  row.engine = kind.name;
  if (record.cell.engine_subject)
    row.engine_version = {.subject = record.cell.engine_subject->ToString(),
                          .label = record.cell.engine_label,
                          .date = record.engine_date};
  row.library = kind.library_source;
  row.library_from = row.library_to = LibraryOf(record, kind);
  row.library_versions = {row.library_to};
  row.runtime = record.cell.runtime;
  row.torch = record.cell.torch;
  row.lock = record.lock;
  row.relax = record.cell.relax;
  row.device = record.cell.probe.device;
  return row;
}

// The key of the question, which is in the cell's folder.
std::string KeyOf(const MergedCell& merged) {
  const absl::StatusOr<Json> request =
      ReadJsonFile(merged.run->root / merged.record->dir / "request.json");
  return request.ok() ? TextOf(*request, "key") : "";
}

PublishedCell CellFor(const MergedCell& merged, const EngineKind& kind, const MergedEvidence& all) {
  const CellRecord& record = *merged.record;
  PublishedCell cell{.id = record.id,
                     .library = LibraryOf(record, kind).subject,
                     .probe = record.cell.probe,
                     .flaky = record.is_flaky(),
                     .evidence = merged.evidence,
                     .inherited_from = record.inherited_from,
                     .contradicted_by = merged.contradicted_by,
                     .key = KeyOf(merged)};
  const auto control = all.controls.find(ControlKey(record));
  if (control != all.controls.end()) cell.control = control->second;
  return cell;
}

size_t PlaceOf(const std::string& engine) {
  const std::vector<std::string> kinds = EngineKindNames();
  return std::find(kinds.begin(), kinds.end(), engine) - kinds.begin();
}

// Asks for the cells of a row whose other options are those of its first cell.
std::string MeasureAgain(const std::vector<const CellRecord*>& cells) {
  const auto plain = std::find_if(cells.begin(), cells.end(), [](const CellRecord* record) {
    return OptionsText(record->cell).empty();
  });
  Cell asked = (plain == cells.end() ? cells.front() : *plain)->cell;
  std::set<std::string> attentions, models, precisions;
  for (const CellRecord* record : cells) {
    if (OptionsText(record->cell) != OptionsText(asked)) continue;
    attentions.insert(record->cell.probe.attention);
    models.insert(record->cell.probe.model);
    precisions.insert(record->cell.probe.precision);
  }
  const int64_t seed = static_cast<int64_t>(asked.probe.seed);
  asked.probe.seed = Probe().seed;
  std::vector<std::pair<std::string, std::string>> lists;  // a comma of a value would be escaped
  const auto ask = [&](std::string& value, const std::set<std::string>& all) {
    value = absl::StrJoin(all, ",");
    if (all.size() > 1) lists.emplace_back(absl::StrJoin(all, "%2C"), value);
  };
  ask(asked.probe.attention, attentions);
  ask(asked.probe.model, models);
  ask(asked.probe.precision, precisions);
  return absl::StrCat(absl::StrReplaceAll(CommandOf(asked), lists), " --seed ", seed);
}

// "v0.8.0" becomes "v0-8-0"; hashes are shortened.
std::string Kebab(absl::string_view text) {
  std::string kebab;
  for (char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) {
      kebab += absl::ascii_tolower(static_cast<unsigned char>(c));
    } else if (!kebab.empty() && kebab.back() != '-') {
      kebab += '-';
    }
  }
  while (!kebab.empty() && kebab.back() == '-') kebab.pop_back();
  return kebab;
}

std::string NameOf(const PublishedRow& row) {
  // An id is a file name, whose length is limited.
  const auto label = [](const PublishedVersion& version) {
    return ShortLabel(version).substr(0, kLabelInName);
  };
  std::vector<std::string> parts = {row.engine, label(row.engine_version), row.library};
  if (row.library_versions.size() > 1) parts.insert(parts.end(), {label(row.library_from), "to"});
  parts.insert(parts.end(), {label(row.library_to), row.runtime});
  if (!row.torch.empty()) parts.insert(parts.end(), {"torch", row.torch});
  if (row.device != Probe().device) parts.push_back(row.device);
  if (!row.relax.empty()) parts.insert(parts.end(), {"without", absl::StrJoin(row.relax, "-")});
  return Kebab(absl::StrJoin(parts, "-"));
}

std::string IdentityOf(const PublishedRow& row) {
  return absl::StrJoin(
      {row.engine, row.engine_version.subject, row.library_from.subject, row.library_to.subject,
       row.runtime, row.torch, row.lock, row.device, absl::StrJoin(row.relax, " ")},
      "\n");
}

// Newest first; by label without dates.
bool IsNewer(const PublishedVersion& a, const PublishedVersion& b) {
  if (a.date != b.date) return a.date > b.date;
  return VersionLess(b.label, a.label);
}

}  // namespace

std::string Today() { return absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()); }

std::string DaysAfter(const std::string& date, int days) {
  absl::CivilDay day;
  if (!absl::ParseCivilTime(date, &day)) return "";
  return absl::FormatCivilTime(day + days);
}

std::string ShortLabel(const PublishedVersion& version) {
  const absl::StatusOr<SubjectSpec> spec = ParseSubjectSpec(version.subject);
  const bool is_hash = spec.ok() && spec->source == SourceKind::kGit &&
                       spec->revision.compare(0, version.label.size(), version.label) == 0;
  return is_hash ? spec->revision.substr(0, 9) : version.label;
}

RowStatus StatusOf(const PublishedRow& row) {
  int ok = 0, not_ok = 0, unsupported = 0;
  for (const PublishedCell& cell : row.cells) {
    unsupported += cell.evidence.verdict.kind == VerdictKind::kUnsupported;
    if (!SaysSomething(cell.evidence.verdict)) continue;
    ++(IsOk(cell) ? ok : not_ok);
  }
  if (ok + not_ok == 0) return RowStatus::kUnknown;
  if (ok == 0) return RowStatus::kFails;
  return not_ok + unsupported == 0 ? RowStatus::kWorks : RowStatus::kWorksExcept;
}

std::vector<PublishedRow> RowsOf(const MergedEvidence& merged, int max_age_days) {
  std::vector<PublishedRow> rows;
  std::map<std::string, size_t> places;
  std::vector<std::vector<const CellRecord*>> records;  // of each row
  for (const MergedCell& cell : merged.cells) {
    const EngineKind& kind = *FindEngineKind(cell.record->cell.engine);
    PublishedRow row = RowFor(cell, kind);
    const auto [it, is_new] = places.emplace(IdentityOf(row), rows.size());
    if (is_new) rows.push_back(std::move(row)), records.emplace_back();
    records[it->second].push_back(cell.record);
    PublishedRow& into = rows[it->second];
    const std::string level =
        LevelOnDevice(cell.run->record.sandbox, cell.record->cell.probe.device);
    into.sandbox = is_new ? level : WeakerLevel(into.sandbox, level);
    into.cells.push_back(CellFor(cell, kind, merged));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    PublishedRow& row = rows[i];
    row.measure_again = MeasureAgain(records[i]);
    row.status = StatusOf(row);
    row.measured = row.cells[0].evidence.measured;
    for (const PublishedCell& cell : row.cells)
      row.measured = std::min(row.measured, cell.evidence.measured);
    row.expires = DaysAfter(row.measured, max_age_days);
  }
  return rows;
}

std::string SandboxNote(const PublishedRow& row) {
  const bool weaker = !row.sandbox.empty() && row.sandbox != Name(SandboxLevel::kFull);
  return weaker ? absl::StrCat(" (sandbox: ", row.sandbox, ")") : "";
}

void SortAndName(std::vector<PublishedRow>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const PublishedRow& a, const PublishedRow& b) {
    if (a.engine != b.engine) return PlaceOf(a.engine) < PlaceOf(b.engine);
    if (a.engine_version.subject != b.engine_version.subject &&
        (a.engine_version.date != b.engine_version.date ||
         a.engine_version.label != b.engine_version.label))
      return IsNewer(a.engine_version, b.engine_version);
    if (a.library_to.subject != b.library_to.subject) return IsNewer(a.library_to, b.library_to);
    return std::tie(a.runtime, b.torch, a.device, b.measured) <
           std::tie(b.runtime, a.torch, b.device, a.measured);
  });
  std::set<std::string> taken;
  for (PublishedRow& row : rows) {
    row.id = NameOf(row);
    if (!taken.insert(row.id).second) {
      row.id = absl::StrCat(row.id, "-", Sha256(IdentityOf(row)).substr(0, 8));
      taken.insert(row.id);
    }
  }
}

std::string VersionText(const PublishedVersion& version) {
  const absl::StatusOr<SubjectSpec> spec = ParseSubjectSpec(version.subject);
  return VersionText(version.label, spec.ok() ? std::optional(*spec) : std::nullopt, version.date);
}

std::string LibraryText(const PublishedRow& row) {
  if (row.library_versions.size() == 1) return VersionText(row.library_to);
  return absl::StrCat(VersionText(row.library_from), " to ", VersionText(row.library_to), ", ",
                      row.library_versions.size(), " versions");
}

std::vector<const PublishedCell*> NewestCells(const PublishedRow& row) {
  std::vector<const PublishedCell*> cells;
  for (const PublishedCell& cell : row.cells) {
    if (cell.library == row.library_to.subject) cells.push_back(&cell);
  }
  return cells;
}

std::string CellText(const PublishedCell& cell) {
  const Verdict& verdict = cell.evidence.verdict;
  if (!SaysSomething(verdict)) return absl::StrCat("unknown (", Name(verdict.kind), ")");
  return absl::StrCat(cell.flaky ? "flaky: " : "", Name(verdict.kind), StandInNote(verdict));
}

}  // namespace bkm
