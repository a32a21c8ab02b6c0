// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CHECK_CHECK_REPORT_H_
#define HARNESS_CHECK_CHECK_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "harness/apicheck/api_check.h"
#include "harness/base/json.h"
#include "harness/check/user_environment.h"
#include "harness/model/cell_record.h"
#include "harness/publish/published_table.h"

namespace bkm {

// An engine and its library in the user's environment.
struct CheckedPairing {
  const EngineKind* kind = nullptr;
  std::string engine;  // version, or nine digits of a commit; empty for a library alone
  std::string library;
  std::vector<Violation> breaks;      // certain failures of the static check
  std::vector<CellRecord> cells;      // one per attention; empty: none ran
  std::vector<CellRecord> remarks;    // in a precision that the engine does not use by itself
  std::optional<PublishedRow> row;    // the published row for exactly these versions
  std::vector<PublishedRow> nearest;  // rows to suggest, the nearest first
};

// Written to JSON: never rename.
enum class CheckAnswer {
  kWorks,
  kWorksExcept,  // with some attentions
  kBroken,
  kUnknown,  // no cell ran, or none gave a result
};
const char* Name(CheckAnswer answer);
CheckAnswer AnswerOf(const CheckedPairing& pairing);

struct CheckReport {
  UserEnvironment environment;
  std::vector<CheckedPairing> pairings;
  std::filesystem::path table;  // table.json; empty: none was found
  std::string run;              // run directory; empty: no cell ran
  std::string layout = "1";     // of the cells and the rows, as LayoutText
  std::string device = "cpu";   // of the cells; the rows are of a CPU
  // What the environment's packages require of each other and do not find, a sentence each. Absent:
  // nobody looked, and why_no_requirements says why.
  std::optional<std::vector<std::string>> violated_requirements = {};
  std::string why_no_requirements = {};
  std::string day;  // YYYY-MM-DD, today: decides which rows have expired
};

// Versions that are installed together.
struct InstalledVersions {
  std::string kind;     // of the engine
  std::string engine;   // subject
  std::string library;  // subject
  std::string torch;    // may have a local part: "2.13.0+cpu"
};

// The table's row for these very versions; of several, the first.
std::optional<PublishedRow> KnownRow(const PublishedTable& table,
                                     const InstalledVersions& installed);

// At most `most` rows of the same engine kind that work. Rows that have not expired by `day` come
// first, then rows of the same engine version, then of the same torch, then the newest. If the
// pairing works with some attentions, only rows that work with one of the other attentions.
std::vector<PublishedRow> NearestRows(const PublishedTable& table, const CheckedPairing& pairing,
                                      const std::string& engine_subject, const std::string& torch,
                                      const std::string& day, size_t most);

// Whether an answer was found for some pairing.
bool DecidedSomething(const CheckReport& report);

// harness/check/check.schema.json.
OrderedJson ToJson(const CheckReport& report);
// For people. The answer comes first.
std::string ToSummary(const CheckReport& report);

}  // namespace bkm

#endif  // HARNESS_CHECK_CHECK_REPORT_H_
