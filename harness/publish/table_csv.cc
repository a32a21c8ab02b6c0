// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/table_csv.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/publish/escape.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

std::string CsvLine(const std::vector<std::string>& fields) {
  return absl::StrCat(absl::StrJoin(fields, ",",
                                    [](std::string* out, const std::string& field) {
                                      absl::StrAppend(out, CsvField(field));
                                    }),
                      "\r\n");
}

}  // namespace

std::string TableCsv(const PublishedTable& table) {
  std::string csv =
      CsvLine({"row",       "status",       "engine",     "engine_label",    "engine_subject",
               "library",   "library_from", "library_to", "library_subject", "runtime",
               "python",    "torch",        "lock",       "device",          "model",
               "attention", "precision",    "options",    "verdict",         "stage",
               "reason",    "message",      "blame",      "flaky",           "measured",
               "expires",   "run",          "dir",        "pylock",          "sandbox"});
  for (const PublishedRow& row : table.rows) {
    for (const PublishedCell& cell : row.cells) {
      const Verdict& verdict = cell.evidence.verdict;
      absl::StrAppend(&csv, CsvLine({row.id,
                                     std::string(Name(row.status)),
                                     row.engine,
                                     row.engine_version.label,
                                     row.engine_version.subject,
                                     row.library,
                                     row.library_from.label,
                                     row.library_to.label,
                                     cell.library,
                                     row.runtime,
                                     row.python,
                                     row.torch,
                                     row.lock,
                                     row.device,
                                     cell.probe.model,
                                     cell.probe.attention,
                                     cell.probe.precision,
                                     OptionsText(cell.probe),
                                     std::string(Name(verdict.kind)),
                                     std::string(Name(verdict.stage)),
                                     verdict.reason,
                                     verdict.message,
                                     absl::StrJoin(verdict.blame, " "),
                                     cell.flaky ? "true" : "false",
                                     cell.evidence.measured,
                                     row.expires,
                                     cell.evidence.run,
                                     cell.evidence.dir,
                                     row.pylock,
                                     row.sandbox}));
    }
  }
  return csv;
}

}  // namespace bkm
