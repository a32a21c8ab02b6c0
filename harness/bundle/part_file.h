// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BUNDLE_PART_FILE_H_
#define HARNESS_BUNDLE_PART_FILE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/store/database.h"

namespace bkm {

// A file of parts and names, which travels between machines. A part is any content, kept once, by
// its SHA-256, compressed where that helps. A name stands for a part.
//
// It is an SQLite file of two tables. A file from elsewhere is untrusted: it is opened read-only,
// may hold these two tables only, and each part is bounded and compared with its SHA-256 when it is
// read. Errors are one sentence that names the file, and the part where one is damaged: DataLoss.
class PartFile {
 public:
  // A part may be at most so large.
  static constexpr int64_t kLargestPart = int64_t{256} << 20;

  // Opens the file to add to it; creates it if it is missing.
  static absl::StatusOr<PartFile> Open(const std::filesystem::path& path);
  static absl::StatusOr<PartFile> OpenForReading(const std::filesystem::path& path);

  // Whether a process that writes the file has been killed or is writing. Open() undoes what a kill
  // left; OpenForReading() refuses the file.
  static bool IsUnfinished(const std::filesystem::path& path);

  // Adds a part if it is not there, and returns its SHA-256.
  absl::StatusOr<std::string> Add(absl::string_view content);
  // Gives the part this name, which may have stood for another part.
  absl::Status SetName(absl::string_view name, absl::string_view part);
  // What `body` adds is there as a whole or not at all, also after a power cut.
  absl::Status Transact(const std::function<absl::Status()>& body) const;

  absl::StatusOr<bool> Has(const std::string& part) const;
  absl::StatusOr<std::string> Read(const std::string& part) const;
  // The parts of all names that start with `prefix`, by the rest of the name.
  absl::StatusOr<std::map<std::string, std::string>> Named(const std::string& prefix) const;
  // The part of a name. NotFound if nothing has it.
  absl::StatusOr<std::string> PartOf(const std::string& name) const;
  // How many parts there are, and their bytes before compression.
  absl::StatusOr<std::pair<int64_t, int64_t>> Size() const;

  const std::filesystem::path& path() const { return database_.path(); }

 private:
  explicit PartFile(Database database) : database_(std::move(database)) {}
  absl::Status Damaged(const std::string& part, absl::string_view why) const;

  Database database_;
};

// Whether `text` is a SHA-256 as this room writes it: 64 lower-case hex digits.
bool IsPartName(absl::string_view text);

}  // namespace bkm

#endif  // HARNESS_BUNDLE_PART_FILE_H_
