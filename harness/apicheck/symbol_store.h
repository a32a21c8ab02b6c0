// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_SYMBOL_STORE_H_
#define HARNESS_APICHECK_SYMBOL_STORE_H_

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/apicheck/symbol_scanner.h"
#include "harness/store/database.h"

namespace bkm {

// Keeps scanned files by blob id, in one SQLite file. Several processes may use one; an object
// belongs to one thread at a time. Losing the file loses nothing but the time of a scan.
class SymbolStore {
 public:
  // DataLoss when the file is no such store; the message says what to do.
  static absl::StatusOr<SymbolStore> Open(const std::filesystem::path& path);

  absl::StatusOr<std::vector<std::string>> Blobs() const;
  absl::Status Put(const std::vector<ScannedFile>& files);
  // The table, or the bodies, of a blob; nullopt when it was never scanned.
  absl::StatusOr<std::optional<std::string>> Table(absl::string_view blob) const;
  absl::StatusOr<std::optional<std::string>> Bodies(absl::string_view blob) const;

 private:
  explicit SymbolStore(Database database) : database_(std::move(database)) {}

  Database database_;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_SYMBOL_STORE_H_
