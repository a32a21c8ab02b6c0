// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "harness/base/shown_text.h"
#include "harness/base/version.h"
#include "harness/check/audit.h"
#include "harness/publish/faults.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

std::string FaultText(const AuditFault& fault) {
  return absl::StrCat(ConditionText(fault.condition), ": ", fault.verdict,
                      fault.message.empty() ? "" : ": ", fault.message);
}

std::string AnswerText(const AuditedPair& pair) {
  switch (pair.answer) {
    case AuditAnswer::kWorks:
      return absl::StrCat("WORKS with ", absl::StrJoin(pair.works_with, ", "));
    case AuditAnswer::kWrong:
      return "WRONG: it trains, and silently something else than what is asked";
    case AuditAnswer::kBroken:
      return "BROKEN";
    case AuditAnswer::kUnknown:
      break;
  }
  return absl::StrCat("UNKNOWN: ", pair.because);
}

std::string EvidenceText(const AuditedPair& pair) {
  if (pair.rows.empty()) return "";
  return absl::StrCat(" (measured on a CPU, ", pair.measured,
                      pair.expired ? ", expired: measure again" : "", "; row ",
                      absl::StrJoin(pair.rows, ", "), ")");
}

std::string NeighbourText(const AuditNeighbour& neighbour) {
  const std::string changes =
      absl::StrJoin(neighbour.changes, ", ", [](std::string* out, const PinChange& change) {
        absl::StrAppend(out, change.package, " ", change.from, " -> ", change.to);
      });
  return absl::StrCat(changes, " (", neighbour.status, ", measured ", neighbour.measured,
                      neighbour.expired ? ", expired" : "", "; row ", neighbour.row, ")");
}

// A sentence for one place of a file.
struct Remark {
  std::string level;  // SARIF's: error, warning, note
  std::string rule;
  std::string text;
  int line = 0;
};

std::vector<Remark> RemarksOf(const AuditReport& report, bool strict) {
  std::vector<Remark> remarks;
  for (const AuditedPair& pair : report.pairs) {
    const bool is_bad = pair.answer == AuditAnswer::kBroken || pair.answer == AuditAnswer::kWrong;
    const bool is_unknown = pair.answer == AuditAnswer::kUnknown;
    std::string text = absl::StrCat(pair.name, ": ", AnswerText(pair), EvidenceText(pair));
    if (!pair.nearest.empty())
      absl::StrAppend(&text, ". Nearest that works: ", NeighbourText(pair.nearest.front()));
    remarks.push_back({is_bad || (is_unknown && strict) ? "error"
                       : is_unknown                     ? "warning"
                                                        : "note",
                       absl::StrCat("pair-", Name(pair.answer)), std::move(text), pair.line});
    for (const AuditFault& fault : pair.faults)
      remarks.push_back({fault.applies || is_bad ? "error" : "warning",
                         fault.is_silent ? "silently-wrong" : "does-not-run",
                         absl::StrCat(pair.name, ": ", FaultText(fault)), pair.line});
  }
  for (const std::string& line : report.not_read) remarks.push_back({"note", "not-read", line});
  return remarks;
}

// As the runner of GitHub reads the data and the properties of a workflow command.
std::string EscapedData(const std::string& text) {
  return absl::StrReplaceAll(text, {{"%", "%25"}, {"\r", "%0D"}, {"\n", "%0A"}});
}
std::string EscapedProperty(const std::string& text) {
  return absl::StrReplaceAll(EscapedData(text), {{":", "%3A"}, {",", "%2C"}});
}

}  // namespace

std::string ToSummary(const AuditReport& report) {
  std::string text = absl::StrCat(report.origin, ", by the table of ", report.table_date, " (",
                                  report.table, "). Nothing was run.\n");
  if (report.pairs.empty())
    absl::StrAppend(&text, "\nUNKNOWN: it names no engine or library that bkm knows\n");
  for (const AuditedPair& pair : report.pairs) {
    absl::StrAppend(&text, "\n", pair.engine, ": ", pair.name, "\n", AnswerText(pair),
                    EvidenceText(pair), "\n");
    for (const bool silent : {true, false}) {
      bool is_first = true;
      for (const AuditFault& fault : pair.faults) {
        if (fault.is_silent != silent) continue;
        if (std::exchange(is_first, false))
          absl::StrAppend(&text, silent ? "Measured and silently wrong:\n" : "Does not run:\n");
        absl::StrAppend(&text, fault.applies ? "  ! " : "  - ", FaultText(fault), "\n");
      }
    }
    if (!pair.nearest.empty()) absl::StrAppend(&text, "Nearest that works, and what to change:\n");
    for (const AuditNeighbour& neighbour : pair.nearest)
      absl::StrAppend(&text, "  ", NeighbourText(neighbour), "\n");
    if (!pair.not_tested.empty())
      absl::StrAppend(&text, "Not tested: ", absl::StrJoin(pair.not_tested, "; "), "\n");
  }
  for (const std::string& line : report.not_read) absl::StrAppend(&text, "\n", line, "\n");
  return Printable(text);
}

std::string ToGithub(const AuditReport& report, bool strict) {
  std::string text;
  for (const Remark& remark : RemarksOf(report, strict)) {
    const std::string command = remark.level == "note" ? "notice" : remark.level;
    const std::string line = remark.line > 0 ? absl::StrCat(",line=", remark.line) : "";
    absl::StrAppend(&text, "::", command, " file=", EscapedProperty(report.origin), line,
                    ",title=bkm audit::", EscapedData(remark.text), "\n");
  }
  return Printable(text);
}

OrderedJson ToSarif(const AuditReport& report, bool strict) {
  OrderedJson rules = OrderedJson::array(), results = OrderedJson::array();
  std::set<std::string> known;
  for (const Remark& remark : RemarksOf(report, strict)) {
    if (known.insert(remark.rule).second) rules.push_back({{"id", remark.rule}});
    OrderedJson place = {{"artifactLocation", {{"uri", report.origin}}}};
    if (remark.line > 0) place["region"] = {{"startLine", remark.line}};
    results.push_back({{"ruleId", remark.rule},
                       {"level", remark.level},
                       {"message", {{"text", remark.text}}},
                       {"locations", {{{"physicalLocation", std::move(place)}}}}});
  }
  return {{"version", "2.1.0"},
          {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
          {"runs",
           {{{"tool",
              {{"driver", {{"name", "bkm"}, {"version", kVersion}, {"rules", std::move(rules)}}}}},
             {"results", std::move(results)}}}}};
}

}  // namespace bkm
