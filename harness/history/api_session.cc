// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/api_session.h"

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/runner/installation.h"

namespace bkm {

absl::Status ApiSession::AddSources(const Matrix& matrix) {
  return catalog_.Add(matrix.sources, matrix.origin, "$.sources");
}

absl::StatusOr<Versions*> ApiSession::versions() {
  if (versions_) return versions_.get();
  // Parse with the interpreter that runs the cells: what it cannot parse, it cannot import.
  const Versions::Options options{
      .cache = CacheDirectory(), .mirrors = mirrors_, .python = CellPython(), .folder = folder_};
  ASSIGN_OR_RETURN(tables_, SymbolTables::Open(options.python, options.cache));
  versions_ = std::make_unique<Versions>(catalog_, options, *tables_);
  return versions_.get();
}

absl::StatusOr<ApiCheck*> ApiSession::CheckOf(const EngineKind& kind) {
  if (kind.entry_modules.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(kind.name, " has no static check"));
  }
  RETURN_IF_ERROR(versions().status());
  std::unique_ptr<ApiCheck>& check = checks_[kind.name];
  if (!check) {
    const Source* library = catalog_.Find(kind.library_source);
    check = std::make_unique<ApiCheck>(
        *tables_, EngineEntry{kind.entry_modules, kind.entry_class, kind.entry_methods},
        library ? library->package : kind.library_source);
  }
  return check.get();
}

void ApiSession::ReportScan(RunObserver& observer) const {
  if (!tables_ || tables_->scanned() == 0) return;
  observer.OnNote(absl::StrCat(tables_->scanned(), " source files scanned and cached"));
}

bool HasStaticCheck(const Cell& cell) {
  return cell.engine_subject && cell.library_subject &&
         !FindEngineKind(cell.engine)->entry_modules.empty();
}

absl::StatusOr<int> MarkStaticallyRed(ApiSession& session, std::vector<PlannedCell>& plan,
                                      RunObserver& observer) {
  ASSIGN_OR_RETURN(Versions* const versions, session.versions());
  std::map<std::string, Tree> trees;
  const auto tree_of = [&](const SubjectSpec& spec) -> absl::StatusOr<Tree> {
    Tree& tree = trees[spec.ToString()];
    if (!tree) {
      ASSIGN_OR_RETURN(const std::vector<CheckedVersion> found, versions->Find({spec.ToString()}));
      tree = found[0].tree;
    }
    return tree;
  };
  int red = 0;
  for (PlannedCell& planned : plan) {
    const Cell& cell = planned.cell;
    const bool checked =
        planned.included && !planned.is_stopped() && cell.plant.empty() && HasStaticCheck(cell);
    if (!checked) continue;
    ASSIGN_OR_RETURN(ApiCheck* const check, session.CheckOf(*FindEngineKind(cell.engine)));
    const absl::StatusOr<std::string> violation = [&]() -> absl::StatusOr<std::string> {
      ASSIGN_OR_RETURN(const Tree engine, tree_of(*cell.engine_subject));
      ASSIGN_OR_RETURN(const Tree library, tree_of(*cell.library_subject));
      ASSIGN_OR_RETURN(const PairGrade grade, check->GradeOf(engine, library));
      if (grade != PairGrade::kImport) return std::string();
      ASSIGN_OR_RETURN(const std::vector<Violation> violations, check->Check(engine, library));
      return ToText(violations[0]);
    }();
    // Sources that cannot be checked are no reason to stop the other cells: this one is run.
    if (!violation.ok()) {
      observer.OnNote(absl::StrCat("no static check of ", planned.id, ": ",
                                   std::string(violation.status().message())));
      continue;
    }
    if (violation->empty()) continue;
    planned.statically_red = *violation;
    ++red;
  }
  session.ReportScan(observer);
  return red;
}

}  // namespace bkm
