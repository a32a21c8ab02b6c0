// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/tree_digest.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace fs = std::filesystem;

absl::StatusOr<std::string> TreeDigest(const fs::path& folder) {
  std::map<std::string, std::string> digests;  // sorted by path
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (it->is_directory() && (name == "__pycache__" || name == ".git")) {
      it.disable_recursion_pending();
    } else if (it->is_symlink()) {
      digests[fs::relative(it->path(), folder, error).string()] =
          Sha256(fs::read_symlink(it->path(), error).string());
    } else if (it->is_regular_file() && it->path().extension() != ".pyc") {
      ASSIGN_OR_RETURN(digests[fs::relative(it->path(), folder, error).string()],
                       Sha256OfFile(it->path()));
    }
  }
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot read ", folder.string(), ": ", error.message()));
  }
  std::string all;
  for (const auto& [path, digest] : digests) absl::StrAppend(&all, digest, "  ", path, "\n");
  return Sha256(all);
}

}  // namespace bkm
