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
class Database {
 public:
  struct Options {
    std::filesystem::path path;
    std::string if_damaged;          // advice for the message about a damaged file
    std::chrono::milliseconds wait;  // longest wait for a lock that another process holds
  };
  // Creates the file and its folders if they are missing.
  static absl::StatusOr<Database> Open(Options options);

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

  std::unique_ptr<sqlite3, Close> handle_;
  Options options_;
};

}  // namespace bkm

#endif  // HARNESS_STORE_DATABASE_H_
