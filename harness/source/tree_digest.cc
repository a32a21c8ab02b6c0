// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/tree_digest.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"
#include "harness/source/tree_rules.h"

namespace bkm {
namespace fs = std::filesystem;

absl::StatusOr<std::string> TreeDigest(const fs::path& folder) {
  std::vector<FoundFile> files;
  RETURN_IF_ERROR(FindFiles(folder, kPathBounds, files));
  std::string all;
  for (const FoundFile& file : files) {
    const fs::path path = folder / file.path;
    if (file.is_link) {
      std::error_code error;
      const fs::path target = fs::read_symlink(path, error);
      if (error) {
        return absl::UnavailableError(
            absl::StrCat("cannot read ", path.string(), ": ", error.message()));
      }
      absl::StrAppend(&all, Sha256(target.string()), "  ", file.path, "\n");
    } else if (path.extension() != ".pyc") {
      ASSIGN_OR_RETURN(const std::string digest, Sha256OfFile(path));
      absl::StrAppend(&all, digest, "  ", file.path, "\n");
    }
  }
  return Sha256(all);
}

}  // namespace bkm
