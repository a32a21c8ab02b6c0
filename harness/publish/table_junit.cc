// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/table_junit.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "harness/publish/escape.h"
#include "harness/publish/evidence.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

// The time attribute, in seconds.
std::string Time(double seconds) { return absl::StrFormat(" time=\"%.1f\"", seconds); }

struct Counts {
  int tests = 0, failures = 0, errors = 0, skipped = 0;
  double seconds = 0;
  void Add(const Counts& other) {
    tests += other.tests, failures += other.failures;
    errors += other.errors, skipped += other.skipped, seconds += other.seconds;
  }
  std::string Attributes() const {
    return absl::StrCat(" tests=\"", tests, "\" failures=\"", failures, "\" errors=\"", errors,
                        "\" skipped=\"", skipped, "\"", Time(seconds));
  }
};

std::string CaseName(const PublishedCell& cell) {
  std::string name =
      absl::StrJoin({cell.probe.model, cell.probe.attention, cell.probe.precision}, " ");
  if (!OptionsText(cell.probe).empty()) absl::StrAppend(&name, " ", OptionsText(cell.probe));
  return absl::StrCat(name, " (", cell.library, ")");
}

// The result element of a cell; also counts it.
std::string Result(const PublishedCell& cell, Counts& counts) {
  const Verdict& verdict = cell.evidence.verdict;
  ++counts.tests;
  counts.seconds += cell.evidence.cost.seconds;
  const bool says = SaysSomething(verdict);
  if (says && IsOk(cell)) return "";
  const char* element = "failure";
  if (verdict.kind == VerdictKind::kSpurious) {
    element = "error";
    ++counts.errors;
  } else if (!says) {
    ++counts.skipped;
    return absl::StrCat("      <skipped message=\"", XmlText(verdict.message), "\"/>\n");
  } else {
    ++counts.failures;
  }
  const std::string what =
      absl::StrCat(cell.flaky ? "flaky: " : "", ShortText(verdict), ": ", verdict.message);
  return absl::StrCat("      <", element, " type=\"", XmlText(Name(verdict.kind)), "\" message=\"",
                      XmlText(what), "\">", XmlText(cell.id), "\n", XmlText(cell.evidence.run), "/",
                      XmlText(cell.evidence.dir), "</", element, ">\n");
}

}  // namespace

std::string TableJunit(const PublishedTable& table) {
  std::string suites;
  Counts all;
  for (const PublishedRow& row : table.rows) {
    std::string cases;
    Counts counts;
    for (const PublishedCell& cell : row.cells) {
      const std::string result = Result(cell, counts);
      const std::string start =
          absl::StrCat("    <testcase classname=\"", XmlText(row.id), "\" name=\"",
                       XmlText(CaseName(cell)), "\"", Time(cell.evidence.cost.seconds));
      absl::StrAppend(&cases, start,
                      result.empty() ? "/>\n" : absl::StrCat(">\n", result, "    </testcase>\n"));
    }
    absl::StrAppend(&suites, "  <testsuite name=\"", XmlText(row.id), "\"", counts.Attributes(),
                    " timestamp=\"", XmlText(row.measured), "T00:00:00\">\n", cases,
                    "  </testsuite>\n");
    all.Add(counts);
  }
  return absl::StrCat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"bkm\"",
                      all.Attributes(), ">\n", suites, "</testsuites>\n");
}

}  // namespace bkm
