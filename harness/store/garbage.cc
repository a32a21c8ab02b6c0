// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/store/garbage.h"

#include "harness/base/status_macros.h"
#include "harness/store/folder_cache.h"

namespace bkm {

absl::StatusOr<std::vector<std::string>> CollectGarbage(
    const std::filesystem::path& cache, std::chrono::system_clock::time_point before) {
  std::vector<std::string> removed;
  for (const std::string kind : {"environments", "probes", "trees"}) {
    ASSIGN_OR_RETURN(const std::vector<std::string> keys,
                     FolderCache(cache / kind).Collect(before));
    for (const std::string& key : keys) removed.push_back(kind + "/" + key);
  }
  return removed;
}

}  // namespace bkm
