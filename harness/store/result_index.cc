// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/store/result_index.h"

#include <sqlite3.h>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

constexpr int kSchema = 2;
constexpr int kBusyMilliseconds = 20'000;

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

// Null when SQLite refuses.
Statement Compile(sqlite3* database, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(database, sql, -1, &statement, nullptr);
  return Statement(statement);
}

void BindText(sqlite3_stmt* statement, int place, absl::string_view text) {
  sqlite3_bind_text(statement, place, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

std::string Text(sqlite3_stmt* statement, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  return std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement, column)));
}

}  // namespace

void ResultIndex::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

absl::Status ResultIndex::LastError() const {
  const int code = sqlite3_errcode(database_.get()) & 0xff;
  const std::string what = absl::StrCat(path_.string(), ": ", sqlite3_errmsg(database_.get()));
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
    return absl::DataLossError(absl::StrCat(
        what, " (remove this file: it only points at results, and new runs fill it again)"));
  }
  if (code == SQLITE_FULL) {
    return absl::ResourceExhaustedError(absl::StrCat(what, " (free some space, or set BKM_CACHE)"));
  }
  return absl::UnavailableError(what);
}

absl::Status ResultIndex::Execute(const char* sql) {
  if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK) {
    return absl::OkStatus();
  }
  return LastError();
}

absl::StatusOr<ResultIndex> ResultIndex::Open(const std::filesystem::path& path) {
  RETURN_IF_ERROR(CreateDirectories(path.parent_path()));
  sqlite3* database = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &database,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  ResultIndex index(std::unique_ptr<sqlite3, Close>(database), path);
  if (code != SQLITE_OK) return index.LastError();
  sqlite3_busy_timeout(database, kBusyMilliseconds);
  RETURN_IF_ERROR(index.Prepare());
  return index;
}

absl::Status ResultIndex::Prepare() {
  RETURN_IF_ERROR(Execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL"));
  int schema = 0;
  {
    const Statement version = Compile(database_.get(), "PRAGMA user_version");
    if (!version || sqlite3_step(version.get()) != SQLITE_ROW) return LastError();
    schema = sqlite3_column_int(version.get(), 0);
  }
  if (schema > kSchema) {
    return absl::DataLossError(absl::StrCat(path_.string(), " was written by a newer bkm (schema ",
                                            schema, "; this one reads ", kSchema,
                                            "): update bkm, or remove the file"));
  }
  return Execute(
      "BEGIN IMMEDIATE;"
      "DROP TABLE IF EXISTS results;"
      "CREATE TABLE IF NOT EXISTS dependences(id TEXT PRIMARY KEY, text TEXT NOT NULL) "
      "  WITHOUT ROWID;"
      "CREATE TABLE IF NOT EXISTS kept("
      "  key TEXT, dependence TEXT, state TEXT, folder TEXT NOT NULL, number INTEGER NOT NULL,"
      "  PRIMARY KEY(key, dependence, state)) WITHOUT ROWID;"
      "CREATE INDEX IF NOT EXISTS kept_by_folder ON kept(folder);"
      "PRAGMA user_version=2;"
      "COMMIT");
}

absl::Status ResultIndex::Put(absl::string_view key, absl::string_view dependence,
                              absl::string_view state, absl::string_view folder) {
  const std::string id = Sha256(dependence);
  const Statement text = Compile(database_.get(), "INSERT OR IGNORE INTO dependences VALUES(?, ?)");
  if (!text) return LastError();
  BindText(text.get(), 1, id);
  BindText(text.get(), 2, dependence);
  if (sqlite3_step(text.get()) != SQLITE_DONE) return LastError();
  const Statement put = Compile(database_.get(),
                                "INSERT OR REPLACE INTO kept VALUES(?, ?, ?, ?, "
                                "  1 + ifnull((SELECT max(number) FROM kept WHERE key = ?), 0))");
  if (!put) return LastError();
  int place = 0;
  for (absl::string_view field : {key, absl::string_view(id), state, folder, key})
    BindText(put.get(), ++place, field);
  return sqlite3_step(put.get()) == SQLITE_DONE ? absl::OkStatus() : LastError();
}

absl::StatusOr<std::vector<std::string>> ResultIndex::Dependences(absl::string_view key) {
  const Statement find =
      Compile(database_.get(),
              "SELECT text FROM dependences JOIN (SELECT dependence, max(number) AS last FROM kept "
              "  WHERE key = ? GROUP BY dependence) ON id = dependence ORDER BY last DESC");
  if (!find) return LastError();
  BindText(find.get(), 1, key);
  std::vector<std::string> found;
  int code = 0;
  while ((code = sqlite3_step(find.get())) == SQLITE_ROW) found.push_back(Text(find.get(), 0));
  if (code != SQLITE_DONE) return LastError();
  return found;
}

absl::StatusOr<std::optional<std::string>> ResultIndex::Find(absl::string_view key,
                                                             absl::string_view dependence,
                                                             absl::string_view state) {
  const Statement find = Compile(
      database_.get(), "SELECT folder FROM kept WHERE key = ? AND dependence = ? AND state = ?");
  if (!find) return LastError();
  const std::string id = Sha256(dependence);
  int place = 0;
  for (absl::string_view field : {key, absl::string_view(id), state})
    BindText(find.get(), ++place, field);
  const int code = sqlite3_step(find.get());
  if (code == SQLITE_DONE) return std::optional<std::string>();
  if (code != SQLITE_ROW) return LastError();
  return std::optional<std::string>(Text(find.get(), 0));
}

absl::Status ResultIndex::Remove(absl::string_view folder) {
  const Statement remove = Compile(database_.get(), "DELETE FROM kept WHERE folder = ?");
  if (!remove) return LastError();
  BindText(remove.get(), 1, folder);
  return sqlite3_step(remove.get()) == SQLITE_DONE ? absl::OkStatus() : LastError();
}

}  // namespace bkm
