// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_FOLDER_READER_H_
#define HARNESS_BASE_FOLDER_READER_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/descriptor.h"

namespace bkm {

// Reads files below one folder into which a subject could write. Opens only regular files that lie
// in the folder: it follows no link, leaves the folder by no "..", and never waits for a pipe or a
// device. Errors name the path; a file of another kind is InvalidArgument, a missing one NotFound.
class FolderReader {
 public:
  explicit FolderReader(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }

  // `file` is relative: names separated by single slashes.
  absl::StatusOr<Descriptor> Open(absl::string_view file) const;
  // The content as it is at one moment: a file that is longer than `most` bytes, or whose length
  // changes meanwhile, is an error.
  absl::StatusOr<std::string> Read(absl::string_view file, int64_t most) const;

  struct Entry {
    std::string name;
    bool is_regular = false;
    int64_t bytes = 0;
    int64_t links = 0;
  };
  // What lies directly in the subfolder, sorted by name; at most `most` entries. A missing
  // subfolder has none.
  absl::StatusOr<std::vector<Entry>> List(absl::string_view subfolder, size_t most) const;

 private:
  absl::StatusOr<Descriptor> OpenAt(absl::string_view file, int flags) const;

  std::filesystem::path folder_;
};

}  // namespace bkm

#endif  // HARNESS_BASE_FOLDER_READER_H_
