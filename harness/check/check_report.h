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

// An engine and its library, as they are installed together.
struct CheckedPairing {
  const EngineKind* kind = nullptr;
  std::string engine;  // version, or nine digits of a commit; empty for a library alone
  std::string library;
  std::vector<Violation> breaks;      // what certainly fails, by the sources
  std::vector<CellRecord> cells;      // one per attention; none where nothing was run
  std::optional<PublishedRow> row;    // of the published table: these very versions
  std::vector<PublishedRow> nearest;  // working rows, the nearest first; where it is not whole
};

// Written to JSON: never rename.
enum class CheckAnswer {
  kWorks,
  kWorksExcept,  // with some attentions
  kBroken,
  kUnknown,  // nothing was run, or nothing that was run says anything
};
const char* Name(CheckAnswer answer);
CheckAnswer AnswerOf(const CheckedPairing& pairing);

struct CheckReport {
  UserEnvironment environment;
  std::vector<CheckedPairing> pairings;
  std::filesystem::path table;  // whose rows are told; empty: none was at hand
  std::string run;              // run directory
  std::string day;              // YYYY-MM-DD: today; rows may have expired
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

// Rows of the table that work, for the same engine kind: those that have not expired by `day`
// first, of these the same engine version, then the same torch, then the newest; `most` at most.
// Where the pairing works with some attentions, only those that work with one of the others.
std::vector<PublishedRow> NearestRows(const PublishedTable& table, const CheckedPairing& pairing,
                                      const std::string& engine_subject, const std::string& torch,
                                      const std::string& day, size_t most);

// harness/check/check.schema.json.
OrderedJson ToJson(const CheckReport& report);
// For people: the answer first.
std::string ToSummary(const CheckReport& report);

}  // namespace bkm

#endif  // HARNESS_CHECK_CHECK_REPORT_H_
