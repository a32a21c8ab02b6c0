// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/store/database.h"

#include <sqlite3.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/shown_text.h"
#include "harness/base/status_macros.h"
#include "harness/store/checksums.h"
#include "harness/store/file_lock.h"

namespace bkm {
namespace {

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

// `text` must outlive the statement's execution.
void Bind(sqlite3_stmt* statement, int place, absl::string_view text) {
  const char* data = text.data() ? text.data() : "";  // a null pointer would bind NULL
  sqlite3_bind_text64(statement, place, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

std::string FirstColumn(sqlite3_stmt* statement) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
  const int size = sqlite3_column_bytes(statement, 0);
  return text ? std::string(text, static_cast<size_t>(size)) : "";
}

}  // namespace

void Database::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

absl::Status Database::LastError() const {
  const std::string what =
      absl::StrCat(options_.path.string(), ": ", ShownLine(sqlite3_errmsg(handle_.get())));
  switch (sqlite3_errcode(handle_.get()) & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_READONLY:  // a file to be read has an unfinished transaction
    case SQLITE_ERROR:     // our statements are correct, so the tables are not the expected ones
      return absl::DataLossError(absl::StrCat(what, " (", options_.if_damaged, ")"));
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(
          absl::StrCat(what, " (free some space, or set BKM_CACHE)"));
    case SQLITE_BUSY:
      return absl::UnavailableError(absl::StrCat(
          what, " (another process is using this file: try again when that process has ended)"));
    default:
      return absl::UnavailableError(what);
  }
}

absl::StatusOr<Database> Database::Open(const Options& options) {
  RETURN_IF_ERROR(CreateDirectories(options.path.parent_path()));
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(options.path.c_str(), &handle,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  Database database(std::unique_ptr<sqlite3, Close>(handle), options);
  if (code != SQLITE_OK) return database.LastError();
  sqlite3_busy_timeout(handle, static_cast<int>(options.wait.count()));
  RETURN_IF_ERROR(database.Prepare());
  return database;
}

absl::StatusOr<Database> Database::OpenForReading(const Options& options) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(options.path, error))
    return absl::NotFoundError(absl::StrCat(options.path.string(), " is not a file"));
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(options.path.c_str(), &handle,
                                   SQLITE_OPEN_READONLY | SQLITE_OPEN_FULLMUTEX, nullptr);
  Database database(std::unique_ptr<sqlite3, Close>(handle), options);
  if (code != SQLITE_OK) return database.LastError();
  sqlite3_busy_timeout(handle, static_cast<int>(options.wait.count()));
  RETURN_IF_ERROR(database.Execute(
      "PRAGMA query_only=ON; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON"));
  RETURN_IF_ERROR(database.CheckOwner());
  RETURN_IF_ERROR(database.CheckTables());
  RETURN_IF_ERROR(database.CheckPages());
  return database;
}

absl::Status Database::Prepare() const {
  RETURN_IF_ERROR(Execute(options_.travels ? "PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL"
                                           : "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL"));
  RETURN_IF_ERROR(
      Execute("PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON"));
  ASSIGN_OR_RETURN(const auto id, QueryOne("PRAGMA application_id"));
  if (id == "0") {
    RETURN_IF_ERROR(
        Execute(absl::StrCat("PRAGMA application_id=", options_.application_id).c_str()));
  }
  RETURN_IF_ERROR(CheckOwner());
  if (!options_.tables.empty()) {
    ASSIGN_OR_RETURN(const auto any, QueryOne("SELECT name FROM sqlite_schema LIMIT 1"));
    if (!any) {
      RETURN_IF_ERROR(Transact([&]() -> absl::Status {
        for (const std::string& table : options_.tables) RETURN_IF_ERROR(Execute(table.c_str()));
        return absl::OkStatus();
      }));
    }
    RETURN_IF_ERROR(CheckTables());
  }
  return CheckPages();
}

absl::Status Database::CheckOwner() const {
  ASSIGN_OR_RETURN(const auto id, QueryOne("PRAGMA application_id"));
  if (id == absl::StrCat(options_.application_id)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(options_.path.string(),
                                          " is damaged or was made by another program (",
                                          options_.if_damaged, ")"));
}

absl::Status Database::CheckTables() const {
  // Only the index of a key has no statement.
  ASSIGN_OR_RETURN(const std::vector<std::string> found,
                   Query("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"));
  if (found == options_.tables) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      options_.path.string(), " has other tables than this bkm knows (", options_.if_damaged, ")"));
}

absl::Status Database::CheckPages() const {
  ASSIGN_OR_RETURN(const auto check, QueryOne("PRAGMA quick_check(1)"));
  if (check == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(options_.path.string(),
                                          " is damaged: ", ShownLine(check.value_or("no answer")),
                                          " (", options_.if_damaged, ")"));
}

absl::StatusOr<Database> Database::OpenOrSetAside(const Options& options) {
  absl::StatusOr<Database> opened = Open(options);
  if (!absl::IsDataLoss(opened.status())) return opened;
  // Another process may be about to do the same.
  ASSIGN_OR_RETURN(const FileLock lock, FileLock::Acquire(options.path.string() + ".lock"));
  opened = Open(options);
  if (!absl::IsDataLoss(opened.status())) return opened;
  ASSIGN_OR_RETURN(const std::filesystem::path aside, SetAside(options.path));
  for (const char* part : {"-wal", "-shm"})
    RETURN_IF_ERROR(RemoveTree(options.path.string() + part));
  const std::string why(opened.status().message());
  opened = Open(options);
  if (opened.ok())
    opened->set_aside_ = absl::StrCat(why, "; it is kept as ", aside.filename().string());
  return opened;
}

absl::Status Database::Execute(const char* sql) const {
  const int code = sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : LastError();
}

absl::Status Database::Run(const char* sql, Values values) const {
  return Query(sql, values).status();
}

absl::StatusOr<std::vector<std::string>> Database::Query(const char* sql, Values values) const {
  sqlite3_stmt* prepared = nullptr;
  sqlite3_prepare_v2(handle_.get(), sql, -1, &prepared, nullptr);
  const std::unique_ptr<sqlite3_stmt, Finalize> statement(prepared);
  if (!statement) return LastError();
  int place = 0;
  for (absl::string_view value : values) Bind(statement.get(), ++place, value);
  std::vector<std::string> rows;
  int code = 0;
  while ((code = sqlite3_step(statement.get())) == SQLITE_ROW)
    rows.push_back(FirstColumn(statement.get()));
  if (code != SQLITE_DONE) return LastError();
  return rows;
}

absl::StatusOr<std::optional<std::string>> Database::QueryOne(const char* sql,
                                                              Values values) const {
  ASSIGN_OR_RETURN(std::vector<std::string> rows, Query(sql, values));
  if (rows.empty()) return std::optional<std::string>();
  return std::optional<std::string>(std::move(rows.front()));
}

absl::Status Database::Transact(const std::function<absl::Status()>& body) const {
  RETURN_IF_ERROR(Execute("BEGIN IMMEDIATE"));
  absl::Status status = body();
  if (status.ok()) status = Execute("COMMIT");
  if (!status.ok()) Execute("ROLLBACK").IgnoreError();
  return status;
}

}  // namespace bkm
