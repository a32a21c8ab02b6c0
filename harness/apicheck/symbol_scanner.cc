// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/symbol_scanner.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"
#include "harness/base/subprocess.h"

namespace bkm {
namespace {

constexpr char kProgram[] =
#include "harness/apicheck/symbol_scan_py.inc"
    ;

}  // namespace

absl::StatusOr<std::string> SymbolScanner::Version() const {
  Command command;
  command.argv = {python_.string(), "-I", "-c", "import sys; print(sys.version)"};
  command.may_run_again = true;
  ASSIGN_OR_RETURN(const std::string python, RunForOutput(command));
  return Sha256(absl::StrCat(kProgram, python)).substr(0, 16);
}

absl::StatusOr<std::vector<ScannedFile>> SymbolScanner::Scan(std::string batch) const {
  Command command;
  command.argv = {python_.string(), "-I", "-S", "-c", kProgram};
  command.input = std::move(batch);
  // A batch takes seconds.
  command.timeout = std::chrono::minutes(20);
  command.in_own_group = false;
  command.may_run_again = true;
  ASSIGN_OR_RETURN(const std::string text, RunForOutput(command));
  std::vector<ScannedFile> files;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> columns = absl::StrSplit(line, '\t');
    if (columns.size() != 3) {
      return absl::InternalError(absl::StrCat("symbol_scan.py wrote ", columns.size(), " columns"));
    }
    files.push_back({columns[0], columns[1], columns[2]});
  }
  return files;
}

}  // namespace bkm
