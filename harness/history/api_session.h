// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_HISTORY_API_SESSION_H_
#define HARNESS_HISTORY_API_SESSION_H_

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

// The symbol tables in the cache, the versions, and one check per engine kind, for commands that
// check sources. Everything is opened when it is first used.
class ApiSession {
 public:
  // `folder` is where relative paths start. Both may be empty.
  ApiSession(std::filesystem::path mirrors, std::filesystem::path folder)
      : mirrors_(std::move(mirrors)), folder_(std::move(folder)) {}

  // Adds the sources of a matrix.
  absl::Status AddSources(const Matrix& matrix);

  const SourceCatalog& catalog() const { return catalog_; }
  absl::StatusOr<Versions*> versions();
  // InvalidArgument if the kind has no static check.
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

// Whether the cell can be checked by its sources: its kind has a static check, and it names both
// subjects.
bool HasStaticCheck(const Cell& cell);

// Sets `statically_red` of the cells in `plan` whose import must fail according to the sources.
// Returns how many there are.
absl::StatusOr<int> MarkStaticallyRed(ApiSession& session, std::vector<PlannedCell>& plan,
                                      RunObserver& observer);

}  // namespace bkm

#endif  // HARNESS_HISTORY_API_SESSION_H_
