// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_PUBLISHED_TABLE_H_
#define HARNESS_PUBLISH_PUBLISHED_TABLE_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/fields.h"
#include "harness/base/json.h"
#include "harness/model/cell_cost.h"
#include "harness/model/probe.h"
#include "harness/model/verdict.h"

namespace bkm {

// The table of supported versions, table.json. Its keys and names are published: never rename.

// An engine or library at one version.
struct PublishedVersion {
  std::string subject;  // exact: "git:verl@<40 hex>", "pypi:torchtitan==0.3.0"
  std::string label;    // as the user wrote it: "v0.8.0", "main"
  std::string date;     // YYYY-MM-DD; empty if unknown
  bool operator==(const PublishedVersion&) const = default;
};

// The newest commit of a repository: what was known when the table was made.
struct SourceHead {
  std::string name;
  std::string commit;
  std::string date;  // YYYY-MM-DD
  bool operator==(const SourceHead&) const = default;
};

// A run that the table contains.
struct PublishedRun {
  std::string dir;  // relative to the table's folder
  std::string matrix;
  bool finished = true;
  std::string cell_code;  // digest of the harness code that ran in its cells
  int cells = 0;          // subjects and controls
  bool operator==(const PublishedRun&) const = default;
};

// A verdict and the cell's folder that it comes from.
struct Evidence {
  std::string run;       // PublishedRun::dir
  std::string dir;       // of the cell, below the run
  std::string measured;  // YYYY-MM-DD
  CellCost cost = {};
  Verdict verdict;  // without its own evidence
  bool operator==(const Evidence&) const = default;
};

// One probe of a row and its result.
struct PublishedCell {
  std::string id;       // of the cell, in the filter grammar
  std::string library;  // which of the row's library versions ran
  Probe probe;          // what was asked, as the id says it
  bool flaky = false;   // its repeats differ; such a cell never counts as ok
  Evidence evidence;
  std::optional<std::string> inherited_from;  // id of the cell whose observation was reused
  std::optional<Evidence> control;            // the same probe on the library alone
  std::vector<Evidence> contradicted_by;      // older runs with another verdict
  std::string key = {};  // of the question that it answers, as in request.json; empty: not known
  bool operator==(const PublishedCell&) const = default;
};

// A flaky cell is not ok.
bool IsOk(const PublishedCell& cell);

// Inconclusive cells (spurious, skipped, unsupported) do not count.
enum class RowStatus {
  kWorks,        // every conclusive cell is ok
  kWorksExcept,  // some are ok
  kFails,        // none is ok
  kUnknown,      // no cell is conclusive; never read as "no"
};
absl::string_view Name(RowStatus status);
std::optional<RowStatus> RowStatusFromName(absl::string_view name);

// One engine version with one library version, or with a range of neighboring versions with the
// same results, in one runtime.
struct PublishedRow {
  std::string id;      // stable from one table to the next; fit for file names and URLs
  std::string engine;  // kind: verl-torchtitan, ...
  PublishedVersion engine_version;  // empty for a library by its own trainer
  std::string library;              // torchtitan, transformers
  PublishedVersion library_from;
  PublishedVersion library_to;  // equal to library_from for one version
  // All versions from library_from to library_to that have evidence, oldest first.
  std::vector<PublishedVersion> library_versions;
  std::string runtime;
  std::string python;  // "3.11"; empty without a lock
  std::string torch;
  std::string lock;                // of library_to; empty if the requirements conflict
  std::vector<std::string> relax;  // declared pins that were dropped
  std::string device;
  RowStatus status = RowStatus::kUnknown;
  std::vector<PublishedCell> cells;  // of all versions; newest version first
  std::string measured;              // day of its oldest evidence
  std::string expires;               // the last day on which that evidence counts
  std::vector<std::string> install;  // shell commands; none if nothing works
  std::string pylock;                // lock file beside the table, or empty
  std::string sandbox = {};          // the weakest level of its cells; empty: not recorded
  // One shell command that measures the newest version again; empty in older tables.
  std::string measure_again = {};
  std::vector<SourceHead> horizon = {};  // of its git sources; a newer commit was not considered
  bool operator==(const PublishedRow&) const = default;
};

struct PublishedTable {
  std::string date;  // day of publication
  std::vector<PublishedRun> runs;
  std::vector<PublishedRow> rows;  // by engine kind; newest engine first, then newest library
  bool operator==(const PublishedTable&) const = default;
};

// Else it is a library by its own trainer.
bool HasEngine(const PublishedRow& row);
// Whether any cell is ok and not flaky.
bool Works(const PublishedRow& row);
// "verl 2026-08-14, torchtitan 2026-08-13": up to when the row's sources were known; empty if
// nobody recorded it.
std::string HorizonText(const PublishedRow& row);
// Whether the row's evidence is too old on `day` (YYYY-MM-DD).
bool IsExpired(const PublishedRow& row, absl::string_view day);

// The fields of table.json, in its order. table.schema.json agrees with them.
void Describe(Fields& fields, PublishedVersion& version);
void Describe(Fields& fields, SourceHead& head);
void Describe(Fields& fields, PublishedRun& run);
void Describe(Fields& fields, Evidence& evidence);
void Describe(Fields& fields, PublishedCell& cell);
void Describe(Fields& fields, PublishedRow& row);
void Describe(Fields& fields, PublishedTable& table);
OrderedJson ToJson(const PublishedTable& table);
// A table that was read, and its folder: its locks lie there, and its runs are relative to it.
struct TableOnDisk {
  PublishedTable table;
  std::filesystem::path folder;
};
// Of an installation: the table that was published there, else the one that came with it; empty:
// neither.
std::filesystem::path DefaultTable(const std::filesystem::path& root);
// `path` is table.json or its folder.
absl::StatusOr<TableOnDisk> ReadPublishedTable(const std::filesystem::path& path);
// Strict: unknown keys and wrong types are errors that start with `origin`.
absl::StatusOr<PublishedTable> PublishedTableFromJson(const Json& json, const std::string& origin);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_PUBLISHED_TABLE_H_
