// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_SYMBOL_TABLES_H_
#define HARNESS_APICHECK_SYMBOL_TABLES_H_

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/apicheck/names.h"
#include "harness/apicheck/symbol_scanner.h"
#include "harness/apicheck/symbol_store.h"
#include "harness/apicheck/symbol_table.h"

namespace bkm {

// Gives equal texts equal small numbers.
class Numbering {
 public:
  int Of(absl::string_view text);
  const std::string& Text(int number) const { return texts_[number]; }
  int size() const { return static_cast<int>(texts_.size()); }

 private:
  std::unordered_map<std::string, int> numbers_;
  std::deque<std::string> texts_;
};

// The symbol tables of all files that checks read: scanned once, kept in the cache, loaded on first
// use. Files and modules have numbers. Belongs to one thread.
class SymbolTables {
 public:
  // Keeps its store in the folder `cache`.
  static absl::StatusOr<std::unique_ptr<SymbolTables>> Open(const std::filesystem::path& python,
                                                            const std::filesystem::path& cache);

  int Blob(absl::string_view id) { return blobs_.Of(id); }
  int Module(absl::string_view name) { return modules_.Of(name); }
  const std::string& ModuleName(int module) const { return modules_.Text(module); }
  int modules() const { return modules_.size(); }

  // Scans those of `blobs` that were never scanned. `batch` returns the output of `git cat-file
  // --batch` for some ids; two threads call it. Files reported as missing stay unknown.
  using Batch = std::function<absl::StatusOr<std::string>(const std::vector<std::string>& ids)>;
  absl::Status Scan(const std::vector<int>& blobs, const Batch& batch);
  int scanned() const { return scanned_; }  // files scanned by this object

  // Null if the file's content is unknown.
  const SymbolTable* Table(int blob);
  // The names that Table(blob)->body binds.
  const Names& NamesIn(int blob);
  const Names& NamesIn(const ClassDefinition& klass);
  const Block* Body(int blob, int index);
  // The first error of reading a table. Results after an error are invalid.
  const absl::Status& failure() const { return failure_; }

 private:
  struct Entry {
    bool asked = false;
    bool asked_bodies = false;
    std::unique_ptr<SymbolTable> table;
    std::unique_ptr<Names> names;
  };
  SymbolTables(SymbolScanner scanner, SymbolStore store)
      : scanner_(std::move(scanner)), store_(std::move(store)) {}
  Entry& EntryOf(int blob);
  void Read(int blob, Entry& entry);

  SymbolScanner scanner_;
  SymbolStore store_;
  Numbering blobs_;
  Numbering modules_;
  std::vector<bool> known_;  // by blob: the store has it
  std::deque<Entry> entries_;
  std::unordered_map<const ClassDefinition*, Names> class_names_;
  absl::Status failure_;
  int scanned_ = 0;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_SYMBOL_TABLES_H_
