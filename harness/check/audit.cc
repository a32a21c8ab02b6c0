// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/check/audit.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "harness/base/did_you_mean.h"
#include "harness/model/cell_pattern.h"
#include "harness/model/dimension.h"
#include "harness/model/engine_kind.h"
#include "harness/publish/coverage.h"
#include "harness/publish/faults.h"
#include "harness/publish/layouts.h"
#include "harness/publish/ranges.h"
#include "harness/publish/rows.h"

namespace bkm {
namespace {

constexpr size_t kMostNeighbours = 3;

constexpr const char* kAnswers[] = {"works", "wrong", "broken", "unknown"};

// The names of a value's settings: "decay" of "decay:linear+total_steps:3", "tp" of
// "dp_shard=2+tp=2".
std::vector<std::string> SettingsOf(absl::string_view value) {
  std::vector<std::string> names;
  for (const absl::string_view part : absl::StrSplit(value, '+')) {
    names.emplace_back(part);
    names.emplace_back(part.substr(0, part.find_first_of(":=")));
  }
  return names;
}

bool IsNamedBy(const std::string& asked, const std::string& value) {
  const std::vector<std::string> settings = SettingsOf(value);
  return CellPattern(asked).Matches(value) ||
         std::find(settings.begin(), settings.end(), asked) != settings.end();
}

bool Applies(const Condition& condition, const Uses& uses) {
  return std::all_of(condition.begin(), condition.end(), [&](const auto& part) {
    const auto named = uses.find(part.first);
    if (named == uses.end()) {
      const Dimension& dimension = *FindDimension(part.first);
      return dimension.use != DimensionUse::kMain && part.second == dimension.default_text;
    }
    return std::any_of(named->second.begin(), named->second.end(),
                       [&](const std::string& value) { return IsNamedBy(value, part.second); });
  });
}

bool IsVersion(const PublishedVersion& published, const VersionPin& pinned) {
  const absl::StatusOr<SubjectSpec> spec = ParseSubjectSpec(published.subject);
  if (!spec.ok() || !pinned.is_exact()) return false;
  if (spec->source == SourceKind::kGit) return spec->revision == pinned.commit;
  return spec->source == SourceKind::kPypi && pinned.commit.empty() &&
         IsSameRelease(spec->revision, pinned.version);
}

// "1.2.3" and not "1.2.3rc1", "1.2.3.dev4" or "1.2.3.post1": ranges say nothing of these.
bool IsPlainRelease(absl::string_view version) {
  return !version.empty() && version.find_first_not_of("0123456789.") == absl::string_view::npos;
}

// One of the row's versions, or a release between the first and the last of them: a range says that
// no release between them behaves differently.
bool HasLibrary(const PublishedRow& row, const VersionPin& pinned) {
  const std::vector<PublishedVersion>& versions = row.library_versions;
  if (std::any_of(versions.begin(), versions.end(),
                  [&](const PublishedVersion& version) { return IsVersion(version, pinned); }))
    return true;
  const absl::StatusOr<SubjectSpec> from = ParseSubjectSpec(row.library_from.subject);
  const absl::StatusOr<SubjectSpec> to = ParseSubjectSpec(row.library_to.subject);
  return from.ok() && to.ok() && from->source == SourceKind::kPypi &&
         to->source == SourceKind::kPypi && IsPlainRelease(pinned.version) &&
         VersionLess(from->revision, pinned.version) && VersionLess(pinned.version, to->revision);
}

std::string TextOf(const VersionPin* package) {
  if (package == nullptr || !package->is_exact()) return "?";
  return package->commit.empty() ? package->version : package->commit.substr(0, 9);
}

// What is pinned of one engine kind.
struct Pair {
  const EngineKind* kind;
  const VersionPin *engine, *library, *torch;  // engine: null for a library alone
};

bool HasRowsOf(const PublishedTable& table, const EngineKind& kind) {
  return std::any_of(table.rows.begin(), table.rows.end(),
                     [&](const PublishedRow& row) { return row.engine == kind.name; });
}

// A library without an engine is looked up as its own trainer drives it, if the table knows that.
std::vector<Pair> PairsOf(const PinnedVersions& pins, const PublishedTable& table) {
  std::vector<Pair> pairs;
  for (const EngineKind* kind :
       KindsAmong([&](const std::string& source) { return pins.Find(source) != nullptr; })) {
    for (const EngineKind& other : EngineKinds()) {
      if (kind->engine_source.empty() && other.engine_source.empty() &&
          other.library_source == kind->library_source && HasRowsOf(table, other))
        kind = &other;
    }
    pairs.push_back({kind, pins.Find(kind->engine_source), pins.Find(kind->library_source),
                     pins.Find("torch")});
  }
  return pairs;
}

// Why the pins name no one version; empty if they do.
std::string WhyOpen(const Pair& pair) {
  std::vector<std::string> why;
  for (const VersionPin* package : {pair.engine, pair.library, pair.torch}) {
    if (package != nullptr && !package->is_exact())
      why.push_back(absl::StrCat(package->name, " has ", package->why_open));
  }
  if (pair.torch == nullptr) why.push_back("torch is not named");
  return absl::StrJoin(why, ", ");
}

bool IsRowOf(const PublishedRow& row, const Pair& pair) {
  const bool has_engine =
      pair.engine == nullptr ? !HasEngine(row) : IsVersion(row.engine_version, *pair.engine);
  return row.engine == pair.kind->name && has_engine && HasLibrary(row, *pair.library) &&
         IsSameRelease(row.torch, pair.torch->version);
}

std::vector<AuditFault> AuditFaultsOf(const std::vector<const PublishedCell*>& cells,
                                      const Uses& uses) {
  std::vector<AuditFault> faults;
  for (RowFault& fault : FaultsOf(cells)) {
    const bool applies = Applies(fault.condition, uses);
    faults.push_back({.verdict = FaultVerdict(*fault.cell),
                      .message = fault.cell->evidence.verdict.message,
                      .is_silent = fault.is_silent,
                      .condition = std::move(fault.condition),
                      .applies = applies});
  }
  return faults;
}

std::vector<AuditNeighbour> NeighboursOf(const Pair& pair, const PublishedTable& table,
                                         const std::string& day) {
  std::vector<std::pair<const PublishedRow*, AuditNeighbour>> found;
  for (const PublishedRow& row : table.rows) {
    if (row.engine != pair.kind->name || !Works(row)) continue;
    AuditNeighbour neighbour{.row = row.id,
                             .measured = row.measured,
                             .expired = IsExpired(row, day),
                             .status = std::string(Name(row.status))};
    const auto change = [&](const std::string& package, const VersionPin* from, std::string to) {
      neighbour.changes.push_back({package, TextOf(from), std::move(to)});
    };
    if (pair.engine != nullptr && !IsVersion(row.engine_version, *pair.engine))
      change(pair.kind->engine_source, pair.engine, VersionText(row.engine_version));
    if (!HasLibrary(row, *pair.library))
      change(pair.kind->library_source, pair.library, VersionText(row.library_to));
    if (pair.torch == nullptr || !IsSameRelease(row.torch, pair.torch->version))
      change("torch", pair.torch, row.torch);
    found.emplace_back(&row, std::move(neighbour));
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    const auto far = [](const auto& one) {
      return std::tuple(one.second.changes.size(), one.second.expired);
    };
    if (far(a) != far(b)) return far(a) < far(b);
    return std::tie(a.first->engine_version.date, a.first->library_to.date) >
           std::tie(b.first->engine_version.date, b.first->library_to.date);
  });
  std::vector<AuditNeighbour> nearest;
  for (auto& [row, neighbour] : found) {
    if (nearest.size() < kMostNeighbours) nearest.push_back(std::move(neighbour));
  }
  return nearest;
}

AuditAnswer AnswerOf(const std::vector<const PublishedCell*>& cells) {
  bool is_red = false, is_silent = false;
  for (const PublishedCell* cell : cells) {
    if (IsOk(*cell)) return AuditAnswer::kWorks;
    const Verdict& verdict = cell->evidence.verdict;
    is_red |= SaysSomething(verdict);
    is_silent |= SaysSomething(verdict) && verdict.kind == VerdictKind::kWrong;
  }
  return is_silent ? AuditAnswer::kWrong : is_red ? AuditAnswer::kBroken : AuditAnswer::kUnknown;
}

AuditedPair AuditOf(const Pair& pair, const PublishedTable& table, const Uses& uses,
                    const std::string& day) {
  AuditedPair audited{.engine = pair.kind->name,
                      .line = pair.engine ? pair.engine->line : pair.library->line};
  audited.name = absl::StrCat(
      pair.engine ? absl::StrCat(pair.kind->engine_source, " ", TextOf(pair.engine), " x ") : "",
      pair.kind->library_source, " ", TextOf(pair.library), ", torch ", TextOf(pair.torch));
  audited.because = WhyOpen(pair);
  std::vector<const PublishedCell*> cells;
  for (const PublishedRow& row : table.rows) {
    if (!audited.because.empty() || !IsRowOf(row, pair)) continue;
    const std::vector<const PublishedCell*> own = CellsByProbe(row);
    cells.insert(cells.end(), own.begin(), own.end());
    audited.rows.push_back(row.id);
    audited.expired |= IsExpired(row, day);
    if (audited.measured.empty() || row.measured < audited.measured)
      audited.measured = row.measured;
    if (audited.not_tested.empty()) audited.not_tested = CoverageOf(row).not_tested;
  }
  audited.answer = AnswerOf(cells);
  audited.faults = AuditFaultsOf(cells, uses);
  for (const PublishedCell* cell : PlainCells(cells)) {
    const std::string& attention = cell->probe.attention;
    std::vector<std::string>& known = audited.works_with;
    if (IsOk(*cell) && std::find(known.begin(), known.end(), attention) == known.end())
      known.push_back(attention);
  }
  if (audited.answer == AuditAnswer::kUnknown && audited.because.empty())
    audited.because = !audited.rows.empty() ? "no cell of this row gave a result"
                      : HasRowsOf(table, *pair.kind)
                          ? "the table has no row of these versions"
                          : absl::StrCat("the table has no row of ", pair.kind->name);
  if (audited.answer != AuditAnswer::kWorks) audited.nearest = NeighboursOf(pair, table, day);
  return audited;
}

}  // namespace

const char* Name(AuditAnswer answer) { return kAnswers[static_cast<size_t>(answer)]; }

absl::StatusOr<Uses> ParseUses(absl::string_view text) {
  Uses uses;
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const Dimension* dimension = FindDimension(pair.first);
    if (dimension == nullptr || dimension->field == nullptr) {
      std::vector<std::string> known;
      for (const Dimension& one : Dimensions()) {
        if (one.field != nullptr) known.push_back(one.name);
      }
      return absl::InvalidArgumentError(
          absl::StrCat("--uses: unknown key '", pair.first, "'", DidYouMean(pair.first, known)));
    }
    if (pair.second.empty())
      return absl::InvalidArgumentError(absl::StrCat("--uses: '", part, "' is not KEY=VALUE"));
    uses[pair.first].push_back(pair.second);
  }
  return uses;
}

AuditReport Audit(const PinnedVersions& pins, const PublishedTable& table, const Uses& uses,
                  const std::string& day) {
  AuditReport report{.origin = pins.origin, .table_date = table.date, .not_read = pins.not_read};
  for (const Pair& pair : PairsOf(pins, table))
    report.pairs.push_back(AuditOf(pair, table, uses, day));
  return report;
}

bool HasFindings(const AuditReport& report, bool strict) {
  return std::any_of(report.pairs.begin(), report.pairs.end(), [&](const AuditedPair& pair) {
    const bool is_bad = pair.answer == AuditAnswer::kBroken || pair.answer == AuditAnswer::kWrong ||
                        (strict && pair.answer == AuditAnswer::kUnknown);
    return is_bad || std::any_of(pair.faults.begin(), pair.faults.end(),
                                 [](const AuditFault& fault) { return fault.applies; });
  });
}

void Describe(Fields& fields, AuditFault& fault) {
  fields.Field("verdict", fault.verdict);
  fields.Field("message", fault.message);
  fields.Field("silent", fault.is_silent);
  fields.Field("condition", fault.condition);
  fields.Field("applies", fault.applies);
}

void Describe(Fields& fields, PinChange& change) {
  fields.Field("package", change.package);
  fields.Field("from", change.from);
  fields.Field("to", change.to);
}

void Describe(Fields& fields, AuditNeighbour& neighbour) {
  fields.Field("row", neighbour.row);
  fields.Field("status", neighbour.status);
  fields.Field("measured", neighbour.measured);
  fields.Field("expired", neighbour.expired);
  fields.Field("changes", neighbour.changes);
}

void Describe(Fields& fields, AuditedPair& pair) {
  fields.Field("engine", pair.engine);
  fields.Field("name", pair.name);
  fields.Int("line", pair.line, 0, INT32_MAX);
  fields.Name("answer", pair.answer, kAnswers);
  fields.Field("because", pair.because);
  fields.Field("rows", pair.rows);
  fields.Field("works_with", pair.works_with);
  fields.Field("measured", pair.measured);
  fields.Field("expired", pair.expired);
  fields.Field("faults", pair.faults);
  fields.Field("not_tested", pair.not_tested);
  fields.Field("nearest", pair.nearest);
}

void Describe(Fields& fields, AuditReport& report) {
  int schema = 1;
  fields.Int("schema", schema, 1, 1);
  fields.Field("origin", report.origin);
  fields.Field("table", report.table);
  fields.Field("table_date", report.table_date);
  fields.Field("pairs", report.pairs);
  fields.Field("not_read", report.not_read);
}

OrderedJson ToJson(const AuditReport& report) { return WriteFields(report); }

}  // namespace bkm
