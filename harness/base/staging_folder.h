// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_STAGING_FOLDER_H_
#define HARNESS_BASE_STAGING_FOLDER_H_

#include <filesystem>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/descriptor.h"

namespace bkm {

// A new folder in which a result is made before a rename puts it in its place. The destructor
// removes what is still there. What a killed process left is removed by the next one that makes
// such a folder.
class StagingFolder {
 public:
  // Makes PARENT/.bkm-PURPOSE-XXXXXX, and PARENT if it is missing.
  static absl::StatusOr<StagingFolder> Create(const std::filesystem::path& parent,
                                              absl::string_view purpose);
  ~StagingFolder();
  StagingFolder(StagingFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}
  StagingFolder& operator=(StagingFolder&&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  StagingFolder(std::filesystem::path path, Descriptor lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::filesystem::path path_;
  Descriptor lock_;  // the folder, with flock(2): its process lives
};

}  // namespace bkm

#endif  // HARNESS_BASE_STAGING_FOLDER_H_
