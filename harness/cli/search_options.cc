// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cli/search_options.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/cli/console.h"
#include "harness/report/command_text.h"

namespace bkm {

namespace fs = std::filesystem;

void SearchOptions::AddOptions(CLI::App& app, const std::string& command) {
  selection.AddOptions(app);
  app.add_option("--axis", axis, "History to search: engine, library, or both at once")
      ->check(CLI::IsMember({"engine", "library", "both"}))
      ->required();
  app.add_option("--out", out, absl::StrCat("Run directory (default: runs/", command, "-CELL)"));
  app.add_option("--jobs,-j", jobs, "Cells to run at once (default: one per core)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--verify-inherited", verify_inherited,
                 "Measure one in N cells that could reuse a result of another cell; a difference "
                 "discards that result and fails the search (default: 20; 0: none)")
      ->check(CLI::Range(0, 1000000));
  sandbox.AddTo(app);
  executor.AddTo(app);
  app.add_flag("--json", json, absl::StrCat("Print ", command, ".json to stdout"));
  app.add_flag("--quiet,-q", quiet, "Print neither progress nor summary");
}

AxisKind SearchOptions::kind() const {
  return axis == "engine" ? AxisKind::kEngine
         : axis == "both" ? AxisKind::kBoth
                          : AxisKind::kLibrary;
}

absl::StatusOr<OneCell> SearchOptions::LoadCell(RunObserver& observer) const {
  RETURN_IF_ERROR(sandbox.Check());
  ASSIGN_OR_RETURN(const Matrix matrix, selection.LoadMatrix());
  ASSIGN_OR_RETURN(const std::vector<CellFilter> filters, selection.Filters());
  return OneCell::Load(matrix, filters,
                       {.mirrors = selection.GitMirrors(),
                        .matrix_folder = selection.MatrixFolder(),
                        .sandbox = std::string(Name(sandbox.level()))},
                       observer);
}

absl::StatusOr<RunDirectory> SearchOptions::MakeDirectory(const std::string& command,
                                                          const PlannedCell& cell,
                                                          const std::string& what) const {
  const fs::path folder =
      out.empty() ? absl::StrCat("runs/", command, "-",
                                 CellFolderName(cell.cell, absl::StrCat(cell.id, axis, what)))
                  : out;
  const RunDirectory directory(fs::absolute(folder));
  RETURN_IF_ERROR(CreateDirectories(directory.root()));
  return directory;
}

MeasurementOptions SearchOptions::Measurement() const {
  return {.slots = jobs,
          .controls = false,
          .verify_inherited = verify_inherited,
          .sandbox = sandbox.level()};
}

absl::StatusOr<std::unique_ptr<CellExecutor>> SearchOptions::Workers(
    const OneCell& cell, const RunDirectory& directory, RunObserver& observer,
    const InterruptSignals& signals) const {
  MeasurementOptions measurement = Measurement();
  ASSIGN_OR_RETURN(measurement.executor, executor.Maker());
  return MakeWorkers({cell.installation, measurement, directory, observer, signals});
}

SearchSetup SearchOptions::SetupOf(const RunDirectory& directory,
                                   const HistoryAxis& history) const {
  return {.directory = directory, .measurement = Measurement(), .held = history.late()};
}

absl::Status SearchOptions::Report(const std::string& command, const RunDirectory& directory,
                                   const OrderedJson& result, const std::string& summary) const {
  RETURN_IF_ERROR(WriteFile(directory.root() / (command + ".json"), ToText(result)));
  if (json) {
    Print(ToText(result));
  } else if (!quiet) {
    Print(summary);
    Printf("Log: %s\nEvidence: bkm explain %s CELL\n", (directory.root() / "search.log").c_str(),
           ShellWord(directory.root()));
  }
  return absl::OkStatus();
}

}  // namespace bkm
