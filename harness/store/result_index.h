// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_STORE_RESULT_INDEX_H_
#define HARNESS_STORE_RESULT_INDEX_H_

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sqlite3;

namespace bkm {

// Where the observation of a cell with the same inputs lies.
struct IndexedResult {
  std::filesystem::path folder;  // of the cell, inside its run directory
  std::chrono::sys_seconds finished;
  bool operator==(const IndexedResult&) const = default;
};

// Finds earlier observations by the hash of everything their cell was given. Several processes may
// use one index; within a process an object belongs to one thread at a time. It only points: a
// caller checks that the folder still holds what it expects. Losing the file loses no result, only
// the reuse of earlier ones.
class ResultIndex {
 public:
  // Creates the file if it is missing. DataLoss when it is no index that this version can read: the
  // message says what to do.
  static absl::StatusOr<ResultIndex> Open(const std::filesystem::path& path);

  // Replaces what stood under `key`.
  absl::Status Put(absl::string_view key, const IndexedResult& result);
  absl::StatusOr<std::optional<IndexedResult>> Find(absl::string_view key);
  absl::Status Remove(absl::string_view key);

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  ResultIndex(std::unique_ptr<sqlite3, Close> database, std::filesystem::path path)
      : database_(std::move(database)), path_(std::move(path)) {}
  absl::Status Prepare();
  absl::Status Execute(const char* sql);
  absl::Status LastError() const;

  std::unique_ptr<sqlite3, Close> database_;
  std::filesystem::path path_;
};

}  // namespace bkm

#endif  // HARNESS_STORE_RESULT_INDEX_H_
