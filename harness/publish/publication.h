// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_PUBLICATION_H_
#define HARNESS_PUBLISH_PUBLICATION_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/publish/evidence.h"
#include "harness/publish/published_table.h"
#include "harness/publish/ranges.h"
#include "harness/publish/registry.h"
#include "harness/publish/rows.h"
#include "harness/publish/table_markdown.h"
#include "harness/source/source_catalog.h"

namespace bkm {

// A table with the locks of its rows, and its files.
struct Publication {
  PublishedTable table;
  std::map<std::string, std::string> pylocks;  // file name -> text
  // What could not be said and why, one sentence each: no range, no lock, cells left out.
  std::vector<std::string> notes;
};

struct PublicationOptions {
  std::string date;  // YYYY-MM-DD: today
  int max_age_days = kMaxAgeDays;
  std::filesystem::path cache;  // whose locks/ holds those of runs that kept none
};

// Puts finished runs together. InvalidArgument where nothing in them is about a pair. Unavailable:
// the registry cannot be reached.
absl::StatusOr<Publication> MakePublication(const std::vector<RunEvidence>& runs,
                                            const PublicationOptions& options,
                                            const SourceCatalog& catalog, VersionHistory& history,
                                            Registry& registry);

// table.json, table.md, table.csv, junit.xml, summary.md, badges/ and locks into `folder`. Locks
// and badges of an older table that this one does not have are removed.
absl::Status WritePublication(const Publication& publication, const std::filesystem::path& folder,
                              EvidenceLinks links = EvidenceLinks::kToRuns);

// What of a published table no longer holds.
struct StaleRow {
  std::string row;
  bool expired = false;
  std::vector<std::string> gone;    // pins that the registry has no longer, or not with these files
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
// For people: what no longer holds, and how much was looked up.
std::string VerificationText(const Verification& verification);

// Looks every pin of every row's lock up again. `sources` finds commits; one whose repository
// cannot be reached is not judged, and said in `notes`.
absl::StatusOr<Verification> VerifyTable(const PublishedTable& table,
                                         const std::filesystem::path& folder,
                                         const std::string& date, const PackageReader& reader,
                                         Registry& registry, GitSources& sources,
                                         std::vector<std::string>& notes);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_PUBLICATION_H_
