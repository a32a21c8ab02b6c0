// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SESSION_API_SESSION_H_
#define HARNESS_SESSION_API_SESSION_H_

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "harness/apicheck/api_check.h"
#include "harness/apicheck/versions.h"
#include "harness/matrix/matrix.h"
#include "harness/matrix/plan.h"
#include "harness/model/engine_kind.h"
#include "harness/runner/observer.h"
#include "harness/source/source_catalog.h"

namespace bkm {

// What the commands that check sources share: the symbol tables in the cache, the versions, and one
// check per engine kind. Nothing is opened before it is asked for.
class ApiSession {
 public:
  // `mirrors` and `folder` (where relative paths start) may be empty.
  ApiSession(std::filesystem::path mirrors, std::filesystem::path folder)
      : mirrors_(std::move(mirrors)), folder_(std::move(folder)) {}

  // The sources that a matrix adds.
  absl::Status AddSources(const Matrix& matrix);

  const SourceCatalog& catalog() const { return catalog_; }
  absl::StatusOr<Versions*> versions();
  // An error for a kind that has no static check.
  absl::StatusOr<ApiCheck*> CheckOf(const EngineKind& kind);
  // Notes how many files were scanned, if any.
  void ReportScan(RunObserver& observer) const;

 private:
  const std::filesystem::path mirrors_;
  const std::filesystem::path folder_;
  SourceCatalog catalog_;
  std::unique_ptr<SymbolTables> tables_;
  std::unique_ptr<Versions> versions_;
  std::map<std::string, std::unique_ptr<ApiCheck>> checks_;  // by kind
};

// Whether the static check has something to say of the cell: its kind has one, and both subjects
// are named.
bool HasStaticCheck(const Cell& cell);

// Sets `statically_red` of the cells in `plan` whose import fails by the sources alone. Returns how
// many.
absl::StatusOr<int> MarkStaticallyRed(ApiSession& session, std::vector<PlannedCell>& plan,
                                      RunObserver& observer);

}  // namespace bkm

#endif  // HARNESS_SESSION_API_SESSION_H_
