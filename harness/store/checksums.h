// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_STORE_CHECKSUMS_H_
#define HARNESS_STORE_CHECKSUMS_H_

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/json.h"

namespace bkm {

// The name of the file in a folder that lists the SHA-256 and the size of the folder's files.
inline constexpr const char* kManifestFile = "manifest.sha256";

// Syncs the regular files below `folder` and then writes its manifest, so a manifest that exists
// stands for content that survived. With `parts`, only these files and subfolders are listed; a
// part that does not exist is left out. Links are neither followed nor listed. `coming` are files,
// by name and content, that the caller writes afterwards.
absl::Status WriteManifest(const std::filesystem::path& folder,
                           const std::vector<std::string>& parts = {},
                           const std::map<std::string, std::string>& coming = {});

// Like WriteManifest for the whole folder, without syncing: for folders that the caller syncs.
absl::Status WriteManifestUnsynced(const std::filesystem::path& folder);

// Compares the files of `folder` with its manifest. NotFound: it has none, as folders of older
// versions. DataLoss: the manifest or a listed file is damaged, missing, or no regular file; the
// message names it. Files that are not listed do not matter.
absl::Status VerifyManifest(const std::filesystem::path& folder);

// Writes PATH.sha256, the checksum of one file, for folders whose files come one by one.
absl::Status SealFile(const std::filesystem::path& path);
// Compares a file with PATH.sha256. NotFound: there is none, as beside files of older versions.
// DataLoss: the file is damaged or missing.
absl::Status VerifySealedFile(const std::filesystem::path& path);

// Takes a sentence about a kept part that was damaged.
using DamageReport = std::function<void(const std::string&)>;

// Writes a small file that is kept, and PATH.sha256.
absl::Status WriteKeptFile(const std::filesystem::path& path, absl::string_view text);
// Its text. NotFound: it is not there, or it was damaged. A damaged one is set aside and reported,
// so that the caller makes it again. One of an older version has no checksum.
absl::StatusOr<std::string> ReadKeptFile(const std::filesystem::path& path,
                                         const DamageReport& report);
// The same for a file that must hold JSON, also without a checksum.
absl::StatusOr<Json> ReadKeptJson(const std::filesystem::path& path, const DamageReport& report);

// Renames a damaged file or folder to NAME.damaged-TIME beside it, so that a new one can be made
// and the old one can be examined. Returns the new path.
absl::StatusOr<std::filesystem::path> SetAside(const std::filesystem::path& path);

// Removes the manifest before listed files are changed. A missing one is not an error.
absl::Status RemoveManifest(const std::filesystem::path& folder);

}  // namespace bkm

#endif  // HARNESS_STORE_CHECKSUMS_H_
