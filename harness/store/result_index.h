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

// Finds earlier results of a question. A result has a key: the hash of all that was fixed
// beforehand; and a dependence: what it turned out to depend on beyond that, and the state in which
// it found those things. A result holds wherever its dependence is in that state. All three are the
// caller's texts.
//
// Several processes may use one index; within a process an object belongs to one thread at a time.
// It only points: a caller checks that the folder is still there. Losing the file loses no result,
// only the reuse of earlier ones.
class ResultIndex {
 public:
  // Creates the file if it is missing. DataLoss when it is no index that this version can read: the
  // message says what to do.
  static absl::StatusOr<ResultIndex> Open(const std::filesystem::path& path);

  // `folder` names where the result lies. Replaces what stood there.
  absl::Status Put(absl::string_view key, absl::string_view dependence, absl::string_view state,
                   absl::string_view folder);

  // The different dependences of the results under `key`, the latest first.
  absl::StatusOr<std::vector<std::string>> Dependences(absl::string_view key);

  // The folder of the result under `key` with this dependence in this state.
  absl::StatusOr<std::optional<std::string>> Find(absl::string_view key,
                                                  absl::string_view dependence,
                                                  absl::string_view state);

  // Forgets every result that lies in `folder`.
  absl::Status Remove(absl::string_view folder);

 private:
  explicit ResultIndex(Database database) : database_(std::move(database)) {}

  Database database_;
};

}  // namespace bkm

#endif  // HARNESS_STORE_RESULT_INDEX_H_
