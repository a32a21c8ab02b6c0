// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/symbol_store.h"

#include <sqlite3.h>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

constexpr int kBusyMilliseconds = 60'000;

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using StatementHandle = std::unique_ptr<sqlite3_stmt, Finalize>;

// Null when SQLite refuses.
StatementHandle Compile(sqlite3* database, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(database, sql, -1, &statement, nullptr);
  return StatementHandle(statement);
}

void Bind(sqlite3_stmt* statement, int place, absl::string_view text) {
  sqlite3_bind_text(statement, place, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
}

std::string Column(sqlite3_stmt* statement, int place) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, place));
  return std::string(text, sqlite3_column_bytes(statement, place));
}

}  // namespace

void SymbolStore::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

absl::Status SymbolStore::LastError() const {
  const int code = sqlite3_errcode(database_.get()) & 0xff;
  const std::string what = absl::StrCat(path_.string(), ": ", sqlite3_errmsg(database_.get()));
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
    return absl::DataLossError(
        absl::StrCat(what, " (remove this file: the next check scans everything again)"));
  }
  if (code == SQLITE_FULL) {
    return absl::ResourceExhaustedError(absl::StrCat(what, " (free some space, or set BKM_CACHE)"));
  }
  return absl::UnavailableError(what);
}

absl::Status SymbolStore::Execute(const char* sql) const {
  return sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK
             ? absl::OkStatus()
             : LastError();
}

absl::StatusOr<SymbolStore> SymbolStore::Open(const std::filesystem::path& path) {
  RETURN_IF_ERROR(CreateDirectories(path.parent_path()));
  sqlite3* database = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &database,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  SymbolStore store(std::unique_ptr<sqlite3, Close>(database), path);
  if (code != SQLITE_OK) return store.LastError();
  sqlite3_busy_timeout(database, kBusyMilliseconds);
  RETURN_IF_ERROR(store.Execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL"));
  RETURN_IF_ERROR(
      store.Execute("CREATE TABLE IF NOT EXISTS files("
                    "  place INTEGER PRIMARY KEY, blob TEXT NOT NULL UNIQUE,"
                    "  symbols TEXT NOT NULL, bodies TEXT NOT NULL)"));
  return store;
}

absl::StatusOr<std::vector<std::string>> SymbolStore::Blobs() const {
  const StatementHandle all =
      Compile(database_.get(), "SELECT blob FROM files INDEXED BY sqlite_autoindex_files_1");
  if (!all) return LastError();
  std::vector<std::string> blobs;
  int code = 0;
  while ((code = sqlite3_step(all.get())) == SQLITE_ROW) blobs.push_back(Column(all.get(), 0));
  if (code != SQLITE_DONE) return LastError();
  return blobs;
}

absl::Status SymbolStore::Put(const std::vector<ScannedFile>& files) {
  RETURN_IF_ERROR(Execute("BEGIN IMMEDIATE"));
  const StatementHandle put = Compile(
      database_.get(), "INSERT OR REPLACE INTO files(blob, symbols, bodies) VALUES(?, ?, ?)");
  if (!put) return LastError();
  for (const ScannedFile& file : files) {
    Bind(put.get(), 1, file.blob);
    Bind(put.get(), 2, file.table);
    Bind(put.get(), 3, file.bodies);
    if (sqlite3_step(put.get()) != SQLITE_DONE) {
      const absl::Status error = LastError();
      Execute("ROLLBACK").IgnoreError();
      return error;
    }
    sqlite3_reset(put.get());
  }
  return Execute("COMMIT");
}

absl::StatusOr<std::optional<std::string>> SymbolStore::Text(const char* sql,
                                                             absl::string_view blob) const {
  const StatementHandle find = Compile(database_.get(), sql);
  if (!find) return LastError();
  Bind(find.get(), 1, blob);
  const int code = sqlite3_step(find.get());
  if (code == SQLITE_DONE) return std::optional<std::string>();
  if (code != SQLITE_ROW) return LastError();
  return std::optional<std::string>(Column(find.get(), 0));
}

absl::StatusOr<std::optional<std::string>> SymbolStore::Table(absl::string_view blob) const {
  return Text("SELECT symbols FROM files WHERE blob = ?", blob);
}

absl::StatusOr<std::optional<std::string>> SymbolStore::Bodies(absl::string_view blob) const {
  return Text("SELECT bodies FROM files WHERE blob = ?", blob);
}

}  // namespace bkm
