// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/symbol_store.h"

#include "harness/base/status_macros.h"

namespace bkm {

absl::StatusOr<SymbolStore> SymbolStore::Open(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(Database database,
                   Database::OpenOrSetAside(
                       {.path = path,
                        .if_damaged = "remove this file: the next check scans everything again",
                        .wait = std::chrono::seconds(60)}));
  RETURN_IF_ERROR(
      database.Execute("CREATE TABLE IF NOT EXISTS files("
                       "  place INTEGER PRIMARY KEY, blob TEXT NOT NULL UNIQUE,"
                       "  symbols TEXT NOT NULL, bodies TEXT NOT NULL)"));
  return SymbolStore(std::move(database));
}

absl::StatusOr<std::vector<std::string>> SymbolStore::Blobs() const {
  return database_.Query("SELECT blob FROM files INDEXED BY sqlite_autoindex_files_1");
}

absl::Status SymbolStore::Put(const std::vector<ScannedFile>& files) {
  return database_.Transact([&] {
    for (const ScannedFile& file : files) {
      RETURN_IF_ERROR(
          database_.Run("INSERT OR REPLACE INTO files(blob, symbols, bodies) VALUES(?, ?, ?)",
                        {file.blob, file.table, file.bodies}));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::optional<std::string>> SymbolStore::Table(absl::string_view blob) const {
  return database_.QueryOne("SELECT symbols FROM files WHERE blob = ?", {blob});
}

absl::StatusOr<std::optional<std::string>> SymbolStore::Bodies(absl::string_view blob) const {
  return database_.QueryOne("SELECT bodies FROM files WHERE blob = ?", {blob});
}

}  // namespace bkm
