// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_GIT_SOURCES_H_
#define HARNESS_SOURCE_GIT_SOURCES_H_

#include <filesystem>
#include <mutex>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/source/git_repository.h"
#include "harness/source/source_catalog.h"
#include "harness/store/folder_cache.h"

namespace bkm {

// Finds commits of the catalog's git sources. Uses the mirror DIR/NAME.git if there is one,
// otherwise a bare clone of the URL in the cache. The clone has no file contents, and is updated
// when a revision is unknown or may have moved. Thread-safe.
class GitSources {
 public:
  // `mirrors` may be empty. `clones` is a folder of the cache.
  GitSources(const SourceCatalog& catalog, std::filesystem::path mirrors,
             std::filesystem::path clones)
      : catalog_(catalog), mirrors_(std::move(mirrors)), clones_(std::move(clones)) {}

  struct Found {
    GitRepository repository;
    std::string commit;  // 40 hex digits
  };
  // NotFound: no such source or revision. Unavailable: the source cannot be reached. The message
  // says what to do.
  absl::StatusOr<Found> Find(absl::string_view name, absl::string_view revision);

  // The repository of a source, cloned if necessary but not updated: call Find first to update it.
  absl::StatusOr<GitRepository> Open(absl::string_view name);

 private:
  absl::StatusOr<GitRepository> OpenClone(const Source& source);
  absl::StatusOr<std::string> FindInClone(const Source& source, const GitRepository& clone,
                                          const std::string& revision);
  absl::Status Fetch(const Source& source, const GitRepository& clone);

  const SourceCatalog& catalog_;
  const std::filesystem::path mirrors_;
  const FolderCache clones_;
  std::mutex mutex_;
  std::set<std::string> fetched_;  // sources that this object has updated
};

}  // namespace bkm

#endif  // HARNESS_SOURCE_GIT_SOURCES_H_
