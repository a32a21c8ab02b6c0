// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/link_tree.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace fs = std::filesystem;

absl::Status LinkFile(const fs::path& from, const fs::path& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  std::error_code error;
  fs::copy_file(from, to, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot copy ", from.string(), " to ", to.string(), ": ", error.message()));
}

absl::Status LinkTree(const fs::path& from, const fs::path& to) {
  std::error_code error;
  const fs::file_status found = fs::symlink_status(from, error);
  if (fs::is_directory(found)) {
    // CreateDirectories would accept a link to a folder elsewhere.
    if (fs::is_symlink(fs::symlink_status(to, error))) fs::remove(to, error);
    RETURN_IF_ERROR(CreateDirectories(to));
    for (const fs::directory_entry& entry : fs::directory_iterator(from, error))
      RETURN_IF_ERROR(LinkTree(entry.path(), to / entry.path().filename()));
  } else if (fs::is_regular_file(found)) {
    fs::remove(to, error);
    return LinkFile(from, to);
  }
  return absl::OkStatus();
}

}  // namespace bkm
