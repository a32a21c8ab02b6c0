// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_PUBLICATION_H_
#define HARNESS_PUBLISH_PUBLICATION_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/history/bisect_report.h"
#include "harness/publish/evidence.h"
#include "harness/publish/published_table.h"
#include "harness/publish/ranges.h"
#include "harness/publish/registry.h"
#include "harness/publish/rows.h"
#include "harness/publish/table_markdown.h"
#include "harness/source/source_catalog.h"

namespace bkm {

// A table with the locks of its rows.
struct Publication {
  PublishedTable table;
  std::map<std::string, std::string> pylocks;  // file name -> text
  // "constraints/verl-fsdp-0.9.1.txt" -> text: of each engine version (of a library by its own
  // trainer, each of its own), its newest row that works.
  std::map<std::string, std::string> constraints;
  std::map<std::string, BisectReport> searches;  // by the name of their run directory
  // What is missing and why, one sentence each: ranges, locks, cells.
  std::vector<std::string> notes;
};

struct PublicationOptions {
  std::string date;  // YYYY-MM-DD: today
  int max_age_days = kMaxAgeDays;
  std::filesystem::path cache;  // locks/ has the locks of runs that keep none
  // An older table to which the runs are added, and the folder of the new one.
  const TableOnDisk* older = nullptr;
  std::filesystem::path folder = {};
};

// Makes the table of finished runs. InvalidArgument if they have no cell of a pair. Unavailable if
// the registry cannot be reached.
absl::StatusOr<Publication> MakePublication(const std::vector<RunEvidence>& runs,
                                            const PublicationOptions& options,
                                            const SourceCatalog& catalog, VersionHistory& history,
                                            Registry& registry);

// Writes table.json, table.md, table.csv, findings.md, junit.xml, summary.md, known-bad.json,
// badges/, constraints/, searches/ and locks to `folder`. Removes locks, constraints and badges of
// an older table that the new one lacks.
absl::Status WritePublication(const Publication& publication, const std::filesystem::path& folder,
                              EvidenceLinks links = EvidenceLinks::kToRuns);

// A row of a published table that no longer holds, and why.
struct StaleRow {
  std::string row;
  bool expired = false;
  std::vector<std::string> gone;    // pins that the registry no longer has, or has with other files
  std::vector<std::string> yanked;  // "attrs==21.1.0 (broken metadata)"
};
struct Verification {
  int rows = 0, locks = 0, pins = 0;
  std::vector<StaleRow> stale;
};
// The fields of --verify --json, in its order. verify.schema.json agrees with them.
void Describe(Fields& fields, StaleRow& row);
void Describe(Fields& fields, Verification& verification);
OrderedJson ToJson(const Verification& verification);
// The same for people.
std::string VerificationText(const Verification& verification);

// Looks up every pin of every row's lock again, and every commit in `sources`. Commits whose
// repository cannot be reached are noted in `notes` and not reported as gone.
absl::StatusOr<Verification> VerifyTable(const PublishedTable& table,
                                         const std::filesystem::path& folder,
                                         const std::string& date, const PackageReader& reader,
                                         Registry& registry, GitSources& sources,
                                         std::vector<std::string>& notes);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_PUBLICATION_H_
