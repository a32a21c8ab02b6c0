// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/check/check_report.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "harness/publish/ranges.h"
#include "harness/publish/rows.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

// Packages whose versions the report lists.
constexpr const char* kTold[] = {"torch",      "transformers", "numpy",
                                 "tensordict", "spmd-types",   "flash-attn"};

bool Counts(const CellRecord& cell) { return cell.verdict && SaysSomething(*cell.verdict); }

// A cell that got past constructing the engine and gave no result, or null: then the static check's
// breaks are not why.
const CellRecord* RanWithoutResult(const CheckedPairing& pairing) {
  const auto found =
      std::find_if(pairing.cells.begin(), pairing.cells.end(), [](const CellRecord& cell) {
        return cell.verdict && !SaysSomething(*cell.verdict) &&
               cell.verdict->stage > Stage::kConstruct;
      });
  return found == pairing.cells.end() ? nullptr : &*found;
}

// Whether an attention that fails in `pairing` works in `row`.
bool WorksWhereItDoesNot(const PublishedRow& row, const CheckedPairing& pairing) {
  return std::any_of(pairing.cells.begin(), pairing.cells.end(), [&](const CellRecord& cell) {
    const bool fails = Counts(cell) && !cell.is_green();
    return fails &&
           std::any_of(row.cells.begin(), row.cells.end(), [&](const PublishedCell& other) {
             return other.probe.attention == cell.cell.probe.attention && IsOk(other);
           });
  });
}

std::string NameOf(const CheckedPairing& pairing) {
  return absl::StrCat(pairing.kind->name, ": ",
                      pairing.engine.empty()
                          ? ""
                          : absl::StrCat(pairing.kind->engine_source, " ", pairing.engine, " x "),
                      pairing.kind->library_source, " ", pairing.library);
}

OrderedJson RowJson(const PublishedRow& row, const std::string& day) {
  return {{"row", row.id},
          {"status", std::string(Name(row.status))},
          {"engine_version", row.engine_version.label},
          {"library_from", row.library_from.label},
          {"library_to", row.library_to.label},
          {"torch", row.torch},
          {"expires", row.expires},
          {"expired", IsExpired(row, day)},
          {"install", row.install},
          {"pylock", row.pylock.empty() ? OrderedJson() : OrderedJson(row.pylock)}};
}

OrderedJson CellJson(const CellRecord& cell) {
  return {
      {"attention", cell.cell.probe.attention},
      {"precision", cell.cell.probe.precision},
      {"verdict",
       cell.verdict ? OrderedJson(std::string(Name(cell.verdict->kind))) : OrderedJson()},
      {"stage", cell.verdict ? OrderedJson(std::string(Name(cell.verdict->stage))) : OrderedJson()},
      {"reason", cell.verdict ? cell.verdict->reason : ""},
      {"message", cell.verdict ? cell.verdict->message : ""},
      {"blame", cell.verdict ? OrderedJson(cell.verdict->blame) : OrderedJson::array()},
      {"dir", cell.dir}};
}

// The first failure of the runs; without one, of the static check.
std::string BecauseOf(const CheckedPairing& pairing) {
  for (const CellRecord& cell : pairing.cells) {
    if (Counts(cell) && !cell.is_green()) {
      return absl::StrCat(
          ShortText(*cell.verdict), ": ", cell.verdict->message,
          cell.verdict->blame.empty()
              ? ""
              : absl::StrCat(" (to blame: ", absl::StrJoin(cell.verdict->blame, ", "), ")"));
    }
  }
  return pairing.breaks.empty() ? "" : ToText(pairing.breaks.front());
}

std::string AnswerLine(const CheckedPairing& pairing) {
  std::vector<std::string> ok, not_ok, unknown;
  for (const CellRecord& cell : pairing.cells)
    (cell.is_green() ? ok : Counts(cell) ? not_ok : unknown).push_back(cell.cell.probe.attention);
  const std::string works = absl::StrCat("WORKS with ", absl::StrJoin(ok, ", "));
  const std::string rest =
      unknown.empty() ? "" : absl::StrCat("; unknown: ", absl::StrJoin(unknown, ", "));
  switch (AnswerOf(pairing)) {
    case CheckAnswer::kWorks:
      return absl::StrCat(works, rest);
    case CheckAnswer::kWorksExcept:
      return absl::StrCat(works, ", except ", absl::StrJoin(not_ok, ", "), rest);
    case CheckAnswer::kBroken:
      return absl::StrCat("BROKEN because ", BecauseOf(pairing));
    case CheckAnswer::kUnknown:
      break;
  }
  const CellRecord* ran = RanWithoutResult(pairing);
  if (ran == nullptr) return "UNKNOWN: no cell gave a result";
  return absl::StrCat("UNKNOWN: ", ShortText(*ran->verdict), ": ", ran->verdict->message);
}

// What packages require of each other and do not find.
std::string RequirementsText(const CheckReport& report) {
  if (!report.violated_requirements)
    return absl::StrCat("\nNobody looked at what the packages require of each other: ",
                        report.why_no_requirements, "\n");
  std::string text;
  for (const std::string& sentence : *report.violated_requirements)
    absl::StrAppend(&text, text.empty() ? "\nDeclared requirements that do not hold:\n" : "", "  ",
                    sentence, "\n");
  return text;
}

// " (measured 2026-11-21, row r3)"
std::string EvidenceText(const PublishedRow& row, const std::string& day) {
  return absl::StrCat(" (measured ", row.measured,
                      IsExpired(row, day) ? ", expired: measure again" : "", ", row ", row.id, ")");
}

std::string RowText(const PublishedRow& row, const std::string& day) {
  std::string text =
      absl::StrCat("  ", row.engine, " ", row.engine_version.label, " x ", row.library, " ",
                   LibraryText(row), ", torch ", row.torch, ": ",
                   row.status == RowStatus::kWorks ? "works" : "works with some attentions",
                   EvidenceText(row, day), "\n");
  for (const std::string& line : row.install) absl::StrAppend(&text, "    ", line, "\n");
  return text;
}

}  // namespace

const char* Name(CheckAnswer answer) {
  switch (answer) {
    case CheckAnswer::kWorks:
      return "works";
    case CheckAnswer::kWorksExcept:
      return "works except";
    case CheckAnswer::kBroken:
      return "broken";
    case CheckAnswer::kUnknown:
      break;
  }
  return "unknown";
}

CheckAnswer AnswerOf(const CheckedPairing& pairing) {
  const auto says = std::count_if(pairing.cells.begin(), pairing.cells.end(), Counts);
  const auto ok =
      std::count_if(pairing.cells.begin(), pairing.cells.end(), std::mem_fn(&CellRecord::is_green));
  if (says == 0) {
    const bool breaks_explain = !pairing.breaks.empty() && RanWithoutResult(pairing) == nullptr;
    return breaks_explain ? CheckAnswer::kBroken : CheckAnswer::kUnknown;
  }
  if (ok == 0) return CheckAnswer::kBroken;
  return ok == says ? CheckAnswer::kWorks : CheckAnswer::kWorksExcept;
}

bool DecidedSomething(const CheckReport& report) {
  // Without cells, sources that agree are all that was asked for.
  return report.run.empty() || std::any_of(report.pairings.begin(), report.pairings.end(),
                                           [](const CheckedPairing& pairing) {
                                             return AnswerOf(pairing) != CheckAnswer::kUnknown;
                                           });
}

std::optional<PublishedRow> KnownRow(const PublishedTable& table,
                                     const InstalledVersions& installed) {
  for (const PublishedRow& row : table.rows) {
    const bool has_library = std::any_of(
        row.library_versions.begin(), row.library_versions.end(),
        [&](const PublishedVersion& version) { return version.subject == installed.library; });
    if (row.engine == installed.kind && row.engine_version.subject == installed.engine &&
        has_library && IsSameRelease(row.torch, installed.torch))
      return row;
  }
  return std::nullopt;
}

std::vector<PublishedRow> NearestRows(const PublishedTable& table, const CheckedPairing& pairing,
                                      const std::string& engine_subject, const std::string& torch,
                                      const std::string& day, size_t most) {
  std::vector<PublishedRow> rows;
  const bool works_in_part = AnswerOf(pairing) == CheckAnswer::kWorksExcept;
  for (const PublishedRow& row : table.rows) {
    if (!Works(row) || row.engine != pairing.kind->name) continue;
    if (!works_in_part || WorksWhereItDoesNot(row, pairing)) rows.push_back(row);
  }
  const auto distance = [&](const PublishedRow& row) {
    return std::tuple(IsExpired(row, day), row.engine_version.subject != engine_subject,
                      !IsSameRelease(row.torch, torch));
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const PublishedRow& a, const PublishedRow& b) {
    if (distance(a) != distance(b)) return distance(a) < distance(b);
    return std::tie(a.engine_version.date, a.library_to.date) >
           std::tie(b.engine_version.date, b.library_to.date);
  });
  if (rows.size() > most) rows.resize(most);
  return rows;
}

OrderedJson ToJson(const CheckReport& report) {
  OrderedJson packages = OrderedJson::object();
  for (const char* name : kTold) {
    const std::string version = report.environment.VersionOf(name);
    packages[name] = version.empty() ? OrderedJson() : OrderedJson(version);
  }
  OrderedJson pairings = OrderedJson::array();
  for (const CheckedPairing& pairing : report.pairings) {
    OrderedJson breaks = OrderedJson::array(), cells = OrderedJson::array(),
                remarks = OrderedJson::array(), nearest = OrderedJson::array();
    for (const CellRecord& cell : pairing.remarks) remarks.push_back(CellJson(cell));
    for (const Violation& broken : pairing.breaks) breaks.push_back(OrderedJson(ToJson(broken)));
    for (const CellRecord& cell : pairing.cells) cells.push_back(CellJson(cell));
    for (const PublishedRow& row : pairing.nearest) nearest.push_back(RowJson(row, report.day));
    pairings.push_back(
        {{"engine", pairing.kind->name},
         {"engine_version", pairing.engine.empty() ? OrderedJson() : OrderedJson(pairing.engine)},
         {"library", pairing.kind->library_source},
         {"library_version", pairing.library},
         {"answer", Name(AnswerOf(pairing))},
         {"because", AnswerOf(pairing) == CheckAnswer::kBroken ? BecauseOf(pairing) : ""},
         {"breaks", std::move(breaks)},
         {"cells", std::move(cells)},
         {"remarks", std::move(remarks)},
         {"known_row", pairing.row ? RowJson(*pairing.row, report.day) : OrderedJson()},
         {"nearest", std::move(nearest)}});
  }
  return {
      {"schema", 1},
      {"interpreter", report.environment.python().string()},
      {"python", report.environment.version()},
      {"embedded", !report.environment.alone()},
      {"packages", std::move(packages)},
      {"table", report.table.empty() ? OrderedJson() : OrderedJson(report.table.string())},
      {"run", report.run.empty() ? OrderedJson() : OrderedJson(report.run)},
      {"layout", report.layout},
      {"device", report.device},
      {"violated_requirements",
       report.violated_requirements ? OrderedJson(*report.violated_requirements) : OrderedJson()},
      {"pairings", std::move(pairings)}};
}

std::string ToSummary(const CheckReport& report) {
  const UserEnvironment& environment = report.environment;
  std::vector<std::string> packages;
  for (const char* name : kTold) {
    const std::string version = environment.VersionOf(name);
    if (!version.empty()) packages.push_back(absl::StrCat(name, " ", version));
  }
  std::string text = absl::StrCat(
      "Python ", environment.version(), " (", environment.python().string(),
      "): ", absl::StrJoin(packages, ", "), report.device == "cpu" ? "" : "; on the GPU", "\n");
  for (const CheckedPairing& pairing : report.pairings) {
    absl::StrAppend(&text, "\n", NameOf(pairing), "\n", AnswerLine(pairing), "\n");
    for (const CellRecord& cell : pairing.cells) {
      if (!cell.verdict) continue;
      absl::StrAppend(&text, "  ", cell.cell.probe.attention, ": ", ShortText(*cell.verdict),
                      cell.verdict->message.empty() ? "" : ": ", cell.verdict->message, "\n");
    }
    for (const CellRecord& cell : pairing.remarks) {
      if (!cell.verdict) continue;
      absl::StrAppend(&text, "  (in ", cell.cell.probe.precision, ", which ", pairing.kind->name,
                      " does not use by itself, ", cell.cell.probe.attention, " is ",
                      ShortText(*cell.verdict), StandInNote(*cell.verdict), ")\n");
    }
    for (const Violation& broken : pairing.breaks)
      absl::StrAppend(&text, "  static check: ", ToText(broken), "\n");
    if (pairing.row) {
      absl::StrAppend(&text, "Published: ", Name(pairing.row->status),
                      EvidenceText(*pairing.row, report.day), "\n");
    } else if (!report.table.empty()) {
      absl::StrAppend(&text, "Published: no row has these versions",
                      report.layout == "1" ? "" : absl::StrCat(" with layout=", report.layout),
                      "\n");
    }
    if (!pairing.nearest.empty()) absl::StrAppend(&text, "Nearest versions that work:\n");
    for (const PublishedRow& row : pairing.nearest)
      absl::StrAppend(&text, RowText(row, report.day));
  }
  absl::StrAppend(&text, RequirementsText(report));
  if (report.table.empty()) {
    absl::StrAppend(&text,
                    "\nThere is no published table to suggest versions that work from (name one "
                    "with --table FILE)\n");
  }
  if (!report.run.empty())
    absl::StrAppend(&text, "\nEvidence: bkm explain ", report.run, " CELL\n");
  return Printable(text);
}

}  // namespace bkm
