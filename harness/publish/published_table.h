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
#include "harness/model/verdict.h"

namespace bkm {

// The table of supported versions, as values: what table.json holds (table.schema.json describes
// it). Every string in it is published and scripted against: never rename.

// An engine or library at one version.
struct PublishedVersion {
  std::string subject;  // exact: "git:verl@<40 hex>", "pypi:torchtitan==0.3.0"
  std::string label;    // as a person asked for it: "v0.8.0", "main"
  std::string date;     // YYYY-MM-DD; empty where unknown
  bool operator==(const PublishedVersion&) const = default;
};

// A run that the table was made from.
struct PublishedRun {
  std::string dir;  // relative to the table's folder
  std::string matrix;
  bool finished = true;
  std::string cell_code;  // digest of what ran inside its cells
  int cells = 0;          // subjects and controls
  bool operator==(const PublishedRun&) const = default;
};

// Where a verdict comes from.
struct Evidence {
  std::string run;       // PublishedRun::dir
  std::string dir;       // of the cell, below the run
  std::string measured;  // YYYY-MM-DD
  double seconds = 0;    // wall time of the cell; 0: not said
  Verdict verdict;       // without its own evidence
  bool operator==(const Evidence&) const = default;
};

// One probe of a row: what was asked, and what came of it.
struct PublishedCell {
  std::string id;       // of the cell, in the filter grammar
  std::string library;  // the library's subject: which of the row's versions this one ran
  std::string model;
  std::string attention;
  std::string precision;
  std::string options;  // what else was asked, "input=padded, micro_batches=2"; empty: the defaults
  bool flaky = false;   // its repeats differ; never ok then
  Evidence evidence;
  std::optional<std::string> inherited_from;  // id of the cell that was measured in its place
  std::optional<Evidence> control;            // the same probe on the library alone
  std::vector<Evidence> contradicted_by;  // older runs of this cell that came to another verdict
  bool operator==(const PublishedCell&) const = default;
};

// Cells that say nothing (spurious, skipped, unsupported) count for none of these.
enum class RowStatus {
  kWorks,        // every cell that says something is ok
  kWorksExcept,  // some are
  kFails,        // none is
  kUnknown,      // no cell says anything: never "no"
};
absl::string_view Name(RowStatus status);
std::optional<RowStatus> RowStatusFromName(absl::string_view name);

// One engine version with one library version, or with a range of neighbouring ones that came to
// the same, in one runtime.
struct PublishedRow {
  std::string id;      // a name that stays from one table to the next; fit for files and URLs
  std::string engine;  // kind: verl-torchtitan, ...
  PublishedVersion engine_version;
  std::string library;  // torchtitan, transformers
  PublishedVersion library_from;
  PublishedVersion library_to;  // equal to library_from for one version
  // All that were run or inherited, oldest first: every distinct one from library_from to
  // library_to.
  std::vector<PublishedVersion> library_versions;
  std::string runtime;
  std::string python;  // "3.11"; empty where there is no lock
  std::string torch;
  std::string lock;  // of library_to; empty where the requirements contradict each other
  std::vector<std::string> relax;  // declared pins that were dropped
  std::string device;
  RowStatus status = RowStatus::kUnknown;
  std::vector<PublishedCell> cells;  // of all versions; newest version first
  std::string measured;              // day of its oldest evidence
  std::string expires;               // the last day on which that evidence is taken for true
  std::vector<std::string> install;  // lines for a shell; none where nothing works
  std::string pylock;                // file beside the table; or empty
  bool operator==(const PublishedRow&) const = default;
};

struct PublishedTable {
  std::string date;  // the day it was made
  std::vector<PublishedRun> runs;
  std::vector<PublishedRow> rows;  // by engine kind; newest engine first, then newest library
  bool operator==(const PublishedTable&) const = default;
};

// Whether any of its cells is ok, and stably so.
bool Works(const PublishedRow& row);
// Whether the row's evidence was too old on the day YYYY-MM-DD.
bool IsExpired(const PublishedRow& row, absl::string_view day);

// The fields of table.json, in its order. table.schema.json agrees with them.
void Describe(Fields& fields, PublishedVersion& version);
void Describe(Fields& fields, PublishedRun& run);
void Describe(Fields& fields, Evidence& evidence);
void Describe(Fields& fields, PublishedCell& cell);
void Describe(Fields& fields, PublishedRow& row);
void Describe(Fields& fields, PublishedTable& table);
OrderedJson ToJson(const PublishedTable& table);
// A table as bkm publish wrote it, and the folder that its runs are relative to and its locks lie
// in.
struct TableOnDisk {
  PublishedTable table;
  std::filesystem::path folder;
};
// `path`: table.json or its folder.
absl::StatusOr<TableOnDisk> ReadPublishedTable(const std::filesystem::path& path);
// Strict: unknown keys and wrong types are errors that start with `origin`.
absl::StatusOr<PublishedTable> PublishedTableFromJson(const Json& json, const std::string& origin);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_PUBLISHED_TABLE_H_
