// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/cell_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/cell/system_error.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<Descriptor> OpenStream(const fs::path& path) {
  constexpr int kFlags = O_CREAT | O_WRONLY | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
  Descriptor file(::open(path.c_str(), kFlags, 0644));
  if (!file.valid()) return SystemError(absl::StrCat("cannot open ", path.string()));
  return file;
}

absl::Status Give(const fs::path& path, uid_t owner) {
  if (::lchown(path.c_str(), owner, owner) != 0)
    return SystemError(absl::StrCat("cannot give ", path.string(), " to user ", owner));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CellStreams> PrepareCellFolder(const fs::path& dir, std::optional<uid_t> owner) {
  for (const char* name : {"work", "tensors"}) RETURN_IF_ERROR(RemoveTree(dir / name));
  for (const char* name : {"work", "work/home", "work/tmp", "tensors"}) {
    RETURN_IF_ERROR(CreateDirectories(dir / name));
    if (owner) RETURN_IF_ERROR(Give(dir / name, *owner));
  }
  CellStreams streams;
  ASSIGN_OR_RETURN(streams.out, OpenStream(dir / "stdout"));
  ASSIGN_OR_RETURN(streams.err, OpenStream(dir / "stderr"));
  return streams;
}

absl::Status ChangeOwner(const fs::path& path, uid_t owner) {
  RETURN_IF_ERROR(Give(path, owner));
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(path, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error))
    RETURN_IF_ERROR(Give(it->path(), owner));
  return absl::OkStatus();
}

}  // namespace bkm
