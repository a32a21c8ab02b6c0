// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CHECK_AUDIT_H_
#define HARNESS_CHECK_AUDIT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/fields.h"
#include "harness/check/pinned_versions.h"
#include "harness/publish/published_table.h"

namespace bkm {

// What the published table says of versions, without running anything.

// Written to JSON: never rename.
enum class AuditAnswer {
  kWorks,   // a measured row, or one inside a published range, with a cell that is ok
  kWrong,   // no cell is ok, and some train silently wrong
  kBroken,  // no cell is ok
  kUnknown,
};
const char* Name(AuditAnswer answer);

// Something that was measured and is not right.
struct AuditFault {
  std::string verdict;     // "wrong at step, schedule-ignored"
  std::string message;     // one of a cell that shows it
  bool is_silent = false;  // nothing but the numbers says so
  // When it holds: dimension -> value, as ids spell it. No cell of the row that agrees with all of
  // this is right. Empty: always.
  std::map<std::string, std::string> condition;
  // Whether that is so by default, or --uses says so.
  bool applies = false;
};

// One version to change, to get to a row that works.
struct PinChange {
  std::string package;
  std::string from;  // as it is pinned; "?" where it is open
  std::string to;
};

struct AuditNeighbour {
  std::string row;
  std::string measured;
  bool expired = false;
  std::string status;  // of the row
  std::vector<PinChange> changes;
};

// An engine and its library that are pinned.
struct AuditedPair {
  std::string engine;  // kind
  std::string name;    // for people: "verl 0.9.1 x transformers 5.10.2, torch 2.13.0"
  int line = 0;        // of the engine's pin, or the library's
  AuditAnswer answer = AuditAnswer::kUnknown;
  std::string because;                  // why it is unknown
  std::vector<std::string> rows;        // ids of the rows that the answer comes from
  std::vector<std::string> works_with;  // attentions with a right cell; by default, if any is so
  std::string measured;                 // day of the oldest of their evidence
  bool expired = false;
  std::vector<AuditFault> faults;  // silent ones first
  std::vector<std::string> not_tested;
  std::vector<AuditNeighbour> nearest;
};

struct AuditReport {
  std::string origin;      // the file or the interpreter
  std::string table;       // the file or URL of the table
  std::string table_date;  // YYYY-MM-DD
  std::vector<AuditedPair> pairs;
  std::vector<std::string> not_read;  // PinnedVersions::not_read
};

// What the user says of the training: dimension -> values. A condition's part holds if a value is
// the part's, a glob that matches it, or the name of one of its settings ("dp_replicate", "decay").
using Uses = std::map<std::string, std::vector<std::string>>;
// Reads "layout=dp_replicate,model=qwen3"; a key may stand several times. Unknown keys are errors.
absl::StatusOr<Uses> ParseUses(absl::string_view text);

// `day` (YYYY-MM-DD) decides which rows have expired.
AuditReport Audit(const PinnedVersions& pins, const PublishedTable& table, const Uses& uses,
                  const std::string& day);

// Whether a pair is broken, or a fault applies; if `strict`, also whether one is unknown.
bool HasFindings(const AuditReport& report, bool strict);

void Describe(Fields& fields, AuditFault& fault);
void Describe(Fields& fields, PinChange& change);
void Describe(Fields& fields, AuditNeighbour& neighbour);
void Describe(Fields& fields, AuditedPair& pair);
void Describe(Fields& fields, AuditReport& report);

// harness/check/audit.schema.json.
OrderedJson ToJson(const AuditReport& report);
// For people. The answer comes first.
std::string ToSummary(const AuditReport& report);
// Workflow commands of GitHub: "::error file=...,line=...::...".
std::string ToGithub(const AuditReport& report, bool strict);
// SARIF 2.1.0 (OASIS).
OrderedJson ToSarif(const AuditReport& report, bool strict);

}  // namespace bkm

#endif  // HARNESS_CHECK_AUDIT_H_
