// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_STORE_DATABASE_H_
#define HARNESS_STORE_DATABASE_H_

#include <chrono>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sqlite3;

namespace bkm {

// One SQLite file. Several processes may use the file at once; one object must not be used by two
// threads at once. Every error names the file: DataLoss when the file is damaged or its tables are
// not the expected ones, ResourceExhausted when the disk is full, otherwise Unavailable.
//
// Settings:
// - journal_mode=WAL, unless the file travels: readers and one writer do not wait for each other.
// The file must lie on a
//   local file system, because WAL needs memory that the processes share.
// - synchronous=NORMAL: a power cut cannot damage the file; it may undo the last transactions. That
//   suits what is kept here, because all of it can be made again.
// - busy_timeout: `Options::wait`.
// - foreign_keys=ON, trusted_schema=OFF, cell_size_check=ON: a damaged or foreign file is noticed
//   early and runs nothing.
// - application_id: `Options::application_id`; a file with another one belongs to another program.
// - quick_check at each opening, which takes milliseconds per megabyte.
class Database {
 public:
  struct Options {
    std::filesystem::path path;
    std::string if_damaged;           // advice for the message about a damaged file
    std::chrono::milliseconds wait;   // longest wait for a lock that another process holds
    int application_id = 0x626b6d31;  // "bkm1"; 0 in a file means that none was set
    // The file is copied to other machines, or lies on a network file system: journal_mode=DELETE
    // and synchronous=FULL. The file alone holds what was written.
    bool travels = false;
    // The CREATE TABLE statements of the file's tables, sorted by name. They are executed in an
    // empty file; a file with any other table, index, view or trigger is DataLoss. Empty: the
    // caller makes the tables.
    std::vector<std::string> tables = {};
  };
  // Creates the file and its folders if they are missing. DataLoss when the file is damaged.
  static absl::StatusOr<Database> Open(const Options& options);
  // Opens a file that others made, and never writes to it. NotFound when there is none.
  static absl::StatusOr<Database> OpenForReading(const Options& options);
  // Like Open, but renames a damaged file to NAME.damaged-TIME and starts with an empty one. The
  // sentence about that is in `set_aside`.
  static absl::StatusOr<Database> OpenOrSetAside(const Options& options);
  // What OpenOrSetAside did, for people; empty when the file was sound.
  const std::string& set_aside() const { return set_aside_; }

  // The parameters of a statement, in order.
  using Values = std::initializer_list<absl::string_view>;

  // Runs statements without parameters, separated by semicolons.
  absl::Status Execute(const char* sql) const;
  // Runs one statement that returns no rows.
  absl::Status Run(const char* sql, Values values) const;
  // Runs one statement and returns the first column of all rows.
  absl::StatusOr<std::vector<std::string>> Query(const char* sql, Values values = {}) const;
  // Returns the first column of the first row; nullopt when there are no rows.
  absl::StatusOr<std::optional<std::string>> QueryOne(const char* sql, Values values = {}) const;

  // Runs `body` in a write transaction. If `body` fails, rolls back and returns its error.
  absl::Status Transact(const std::function<absl::Status()>& body) const;

  const std::filesystem::path& path() const { return options_.path; }

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  Database(std::unique_ptr<sqlite3, Close> handle, Options options)
      : handle_(std::move(handle)), options_(std::move(options)) {}
  absl::Status LastError() const;
  absl::Status Prepare() const;
  absl::Status CheckOwner() const;
  absl::Status CheckTables() const;
  absl::Status CheckPages() const;

  std::unique_ptr<sqlite3, Close> handle_;
  Options options_;
  std::string set_aside_;
};

}  // namespace bkm

#endif  // HARNESS_STORE_DATABASE_H_
