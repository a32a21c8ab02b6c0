// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/store/result_index.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

constexpr int kSchema = 2;
constexpr char kTables[] =
    "DROP TABLE IF EXISTS results;"
    "CREATE TABLE IF NOT EXISTS dependences(id TEXT PRIMARY KEY, text TEXT NOT NULL) "
    "  WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS kept("
    "  key TEXT, dependence TEXT, state TEXT, folder TEXT NOT NULL, number INTEGER NOT NULL,"
    "  PRIMARY KEY(key, dependence, state)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS kept_by_folder ON kept(folder);"
    "PRAGMA user_version=2";

}  // namespace

absl::StatusOr<ResultIndex> ResultIndex::Open(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(Database database,
                   Database::OpenOrSetAside(
                       {.path = path,
                        .if_damaged = "remove this file: it only points at results, and new runs "
                                      "fill it again",
                        .wait = std::chrono::seconds(20)}));
  ASSIGN_OR_RETURN(const auto version, database.QueryOne("PRAGMA user_version"));
  int schema = 0;
  if (version && absl::SimpleAtoi(*version, &schema) && schema > kSchema) {
    return absl::DataLossError(absl::StrCat(path.string(), " was written by a newer bkm (schema ",
                                            schema, "; this one reads ", kSchema,
                                            "): update bkm, or remove the file"));
  }
  RETURN_IF_ERROR(database.Transact([&] { return database.Execute(kTables); }));
  return ResultIndex(std::move(database));
}

absl::Status ResultIndex::Put(absl::string_view key, absl::string_view dependence,
                              absl::string_view state, absl::string_view folder) {
  const std::string id = Sha256(dependence);
  RETURN_IF_ERROR(
      database_.Run("INSERT OR IGNORE INTO dependences VALUES(?, ?)", {id, dependence}));
  return database_.Run(
      "INSERT OR REPLACE INTO kept VALUES(?, ?, ?, ?, "
      "  1 + ifnull((SELECT max(number) FROM kept WHERE key = ?), 0))",
      {key, id, state, folder, key});
}

absl::StatusOr<std::vector<std::string>> ResultIndex::Dependences(absl::string_view key) {
  return database_.Query(
      "SELECT text FROM dependences JOIN (SELECT dependence, max(number) AS last FROM kept "
      "  WHERE key = ? GROUP BY dependence) ON id = dependence ORDER BY last DESC",
      {key});
}

absl::StatusOr<std::optional<std::string>> ResultIndex::Find(absl::string_view key,
                                                             absl::string_view dependence,
                                                             absl::string_view state) {
  return database_.QueryOne(
      "SELECT folder FROM kept WHERE key = ? AND dependence = ? AND state = ?",
      {key, Sha256(dependence), state});
}

absl::Status ResultIndex::Remove(absl::string_view folder) {
  return database_.Run("DELETE FROM kept WHERE folder = ?", {folder});
}

}  // namespace bkm
