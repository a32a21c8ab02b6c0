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

// Runs the Python program that parses files, isolated, without executing their code.
class SymbolScanner {
 public:
  // `python` must be the interpreter that runs the cells, because a file that it cannot parse
  // cannot be imported either.
  explicit SymbolScanner(std::filesystem::path python) : python_(std::move(python)) {}

  // A hash of the program and of Python's version: a table depends on these and on the file alone.
  absl::StatusOr<std::string> Version() const;

  // `batch` is the output of `git cat-file --batch`. Files reported as missing are left out.
  absl::StatusOr<std::vector<ScannedFile>> Scan(std::string batch) const;

 private:
  std::filesystem::path python_;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_SYMBOL_SCANNER_H_
