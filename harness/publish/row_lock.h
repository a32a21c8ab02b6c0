// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_ROW_LOCK_H_
#define HARNESS_PUBLISH_ROW_LOCK_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/publish/evidence.h"
#include "harness/publish/published_table.h"
#include "harness/publish/registry.h"
#include "harness/runtime/runtime_lock.h"
#include "harness/source/source_catalog.h"

namespace bkm {

// Locks by their keys: those that runs keep, else those of the cache (of runs that kept none).
class LockFinder {
 public:
  LockFinder(const std::vector<RunEvidence>& runs, std::filesystem::path cache)
      : runs_(runs), cache_(std::move(cache)) {}
  // NotFound where nobody has it any more.
  absl::StatusOr<RuntimeLock> Find(const std::string& key);

 private:
  absl::Status ReadCache();

  const std::vector<RunEvidence>& runs_;
  const std::filesystem::path cache_;
  bool cache_was_read_ = false;
  std::map<std::string, RuntimeLock> found_;
};

// "pylock.<id>.toml".
std::string PylockName(const PublishedRow& row);

// The row's newest pair with its whole runtime as a PEP 751 lock: every package by version and by
// the hashes that were measured, commits by their repository, and the kind of machine that it was
// resolved for. It names no folder of this machine. NotFound: a pin or its files are not in the
// registry any more; FailedPrecondition: the runtime is no lock that others can have.
absl::StatusOr<std::string> PylockText(const PublishedRow& row, const RuntimeLock& lock,
                                       const SourceCatalog& catalog, Registry& registry);

// Lines for a shell that install the row: by its lock, or without one by names and versions.
std::vector<std::string> InstallLines(const PublishedRow& row, const SourceCatalog& catalog);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_ROW_LOCK_H_
