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

// Finds locks by their keys, in the runs that keep them, else in the cache.
class LockFinder {
 public:
  LockFinder(const std::vector<RunEvidence>& runs, std::filesystem::path cache)
      : runs_(runs), cache_(std::move(cache)) {}
  // NotFound if neither has it.
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

// The row's newest pair and its runtime as a PEP 751 lock: every package with its version and
// measured hashes, commits with their repositories, and the kind of machine that it was resolved
// for. It names no folder of this machine. NotFound: the registry no longer has a pin or its files.
// FailedPrecondition: others cannot install the runtime.
absl::StatusOr<std::string> PylockText(const PublishedRow& row, const RuntimeLock& lock,
                                       const SourceCatalog& catalog, Registry& registry);

// The row's newest pair and its packages as constraints for uv and pip (-c), one line for each:
// "numpy==2.4.6", "torchtitan @ git+URL@COMMIT". torch is named without its local part, which
// depends on the index. Empty if a repository is not known.
std::string ConstraintsText(const PublishedRow& row, const RuntimeLock& lock,
                            const SourceCatalog& catalog);

// Shell commands that install the row from its lock, or without a lock by names and versions.
std::vector<std::string> InstallLines(const PublishedRow& row, const SourceCatalog& catalog);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_ROW_LOCK_H_
