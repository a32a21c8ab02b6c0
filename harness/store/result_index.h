// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_STORE_RESULT_INDEX_H_
#define HARNESS_STORE_RESULT_INDEX_H_

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/store/database.h"

namespace bkm {

// Finds earlier results that can be reused. A result is stored under three texts of the caller: a
// key (the hash of everything that was fixed beforehand), a dependence (the list of things that the
// result turned out to depend on) and a state (the content of those things). The result is valid
// wherever the things in its dependence have the same state.
//
// Several processes may use one index; one object must not be used by two threads at once. The
// index only points at folders, and the caller checks that a folder still exists. Losing the file
// loses no result, only the reuse of earlier results.
class ResultIndex {
 public:
  // Creates the file if it is missing. DataLoss when this version cannot read the file as an index;
  // the message says what to do.
  static absl::StatusOr<ResultIndex> Open(const std::filesystem::path& path);

  // Records that the result is in `folder`. Replaces an earlier entry for the same three texts.
  absl::Status Put(absl::string_view key, absl::string_view dependence, absl::string_view state,
                   absl::string_view folder);

  // The distinct dependences of the results under `key`, latest first.
  absl::StatusOr<std::vector<std::string>> Dependences(absl::string_view key);

  // The folder of the result under `key` with this dependence in this state.
  absl::StatusOr<std::optional<std::string>> Find(absl::string_view key,
                                                  absl::string_view dependence,
                                                  absl::string_view state);

  // Removes every entry that points at `folder`.
  absl::Status Remove(absl::string_view folder);

  // What Open did about a damaged file, for people; empty when the file was sound.
  const std::string& set_aside() const { return database_.set_aside(); }

 private:
  explicit ResultIndex(Database database) : database_(std::move(database)) {}

  Database database_;
};

}  // namespace bkm

#endif  // HARNESS_STORE_RESULT_INDEX_H_
