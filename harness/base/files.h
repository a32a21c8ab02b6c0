// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_FILES_H_
#define HARNESS_BASE_FILES_H_

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/descriptor.h"

namespace bkm {

// Opens a file for reading. What is not a regular file is an error: a run directory, bundle or
// store of others may have a FIFO, which would block for ever, or a device in a file's place.
absl::StatusOr<Descriptor> OpenRegularFile(const std::filesystem::path& path);

// Reads the whole regular file, of at most 1 GiB. The error names the path and the system's reason.
absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path);

// Writes a temporary file beside `path` and renames it, so that a reader sees either the old or the
// new content and never a part. Creates missing folders. When it returns, the file survives a power
// cut: the file is synced before the rename, and its folder after it, which takes milliseconds.
absl::Status WriteFile(const std::filesystem::path& path, absl::string_view content);

// Like WriteFile, without syncing. After a power cut the file may be missing, empty, old or torn.
// Only for logs, for scratch files, and for files whose reader notices damage and makes them again.
absl::Status WriteScratchFile(const std::filesystem::path& path, absl::string_view content);

// Makes a file that another program wrote survive a power cut; its name needs SyncFolder, too.
absl::Status SyncFile(int file, const std::filesystem::path& path);
// Makes the names in a folder survive a power cut.
absl::Status SyncFolder(const std::filesystem::path& folder);
// Makes everything below a folder survive a power cut: syncs the whole file system.
absl::Status SyncTree(const std::filesystem::path& folder);

// mkdir -p.
absl::Status CreateDirectories(const std::filesystem::path& path);

// Creates an empty folder in `parent` whose name starts with `prefix`. Creates `parent` if missing.
absl::StatusOr<std::filesystem::path> CreateTempDirectory(const std::filesystem::path& parent,
                                                          absl::string_view prefix);

// Removes `path` and everything below it, even in folders that a subject made read-only. A missing
// path is not an error.
absl::Status RemoveTree(const std::filesystem::path& path);

// Whether `path` is `folder` or below it, by their spelling alone.
bool IsAtOrBelow(const std::filesystem::path& path, const std::filesystem::path& folder);

// $BKM_CACHE, else $XDG_CACHE_HOME/bkm, else ~/.cache/bkm.
std::filesystem::path CacheDirectory();

}  // namespace bkm

#endif  // HARNESS_BASE_FILES_H_
