// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_SYMBOL_SCANNER_H_
#define HARNESS_APICHECK_SYMBOL_SCANNER_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace bkm {

// A file's symbol table and its functions' bodies, as text (symbol_table.h reads them).
struct ScannedFile {
  std::string blob;  // git's id of the content
  std::string table;
  std::string bodies;
};

// Runs the isolated Python program that parses files and executes none of their code.
class SymbolScanner {
 public:
  // `python` is the interpreter that runs the cells: what it cannot parse, it cannot import.
  explicit SymbolScanner(std::filesystem::path python) : python_(std::move(python)) {}

  // Names everything that a table depends on besides the file: the program and Python's version.
  absl::StatusOr<std::string> Version() const;

  // `batch` is what `git cat-file --batch` prints. Files that it calls missing are left out.
  absl::StatusOr<std::vector<ScannedFile>> Scan(std::string batch) const;

 private:
  std::filesystem::path python_;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_SYMBOL_SCANNER_H_
