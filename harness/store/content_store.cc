// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/store/content_store.h"

#include "absl/strings/str_cat.h"
#include "harness/base/check.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

absl::Status CannotStore(const fs::path& path, const std::error_code& error) {
  const std::string message = absl::StrCat("cannot store ", path.string(), ": ", error.message());
  if (error == std::errc::no_space_on_device) {
    return absl::ResourceExhaustedError(
        absl::StrCat(message, " (free some space, or set BKM_CACHE)"));
  }
  if (error == std::errc::no_such_file_or_directory) return absl::NotFoundError(message);
  return absl::UnavailableError(message);
}

}  // namespace

fs::path ContentStore::PathOf(absl::string_view sha256) const {
  HARNESS_CHECK(sha256.size() == 64) << sha256;
  return root_ / std::string(sha256.substr(0, 2)) / std::string(sha256.substr(2));
}

absl::Status ContentStore::Adopt(const fs::path& temporary, absl::string_view sha256) const {
  const fs::path path = PathOf(sha256);
  RETURN_IF_ERROR(CreateDirectories(path.parent_path()));
  std::error_code error;
  fs::permissions(temporary, fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read,
                  error);
  if (!error) fs::rename(temporary, path, error);
  return error ? CannotStore(path, error) : absl::OkStatus();
}

absl::StatusOr<std::string> ContentStore::PutBytes(absl::string_view bytes) const {
  const std::string sha256 = Sha256(bytes);
  std::error_code error;
  if (fs::exists(PathOf(sha256), error)) return sha256;
  ASSIGN_OR_RETURN(const fs::path folder, CreateTempDirectory(root_, ".put-"));
  absl::Status status = WriteFile(folder / "content", bytes);
  if (status.ok()) status = Adopt(folder / "content", sha256);
  RemoveTree(folder).IgnoreError();
  RETURN_IF_ERROR(status);
  return sha256;
}

absl::StatusOr<std::string> ContentStore::PutFile(const fs::path& file) const {
  ASSIGN_OR_RETURN(const fs::path folder, CreateTempDirectory(root_, ".put-"));
  std::error_code error;
  fs::copy_file(file, folder / "content", error);
  // The copy is hashed, not the original, which somebody may be writing to.
  absl::StatusOr<std::string> sha256 =
      error ? CannotStore(file, error) : Sha256OfFile(folder / "content");
  if (sha256.ok() && !fs::exists(PathOf(*sha256), error)) {
    if (absl::Status status = Adopt(folder / "content", *sha256); !status.ok()) sha256 = status;
  }
  RemoveTree(folder).IgnoreError();
  return sha256;
}

absl::StatusOr<fs::path> ContentStore::Get(absl::string_view sha256) const {
  const fs::path path = PathOf(sha256);
  std::error_code error;
  if (fs::exists(path, error)) return path;
  return absl::NotFoundError(
      absl::StrCat("the store ", root_.string(), " has no content ", sha256));
}

}  // namespace bkm
