// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_SEARCH_OPTIONS_H_
#define HARNESS_CLI_SEARCH_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/executor_option.h"
#include "harness/cli/sandbox_option.h"
#include "harness/cli/selection.h"
#include "harness/history/search_session.h"
#include "harness/session/one_cell.h"

namespace bkm {

// Options that the history searches share: the cell, the history and the run directory.
struct SearchOptions {
  Selection selection;
  SandboxOption sandbox;
  ExecutorOption executor{MakeRayExecutors};
  std::string axis;
  std::string since;  // YYYY-MM-DD; may be empty
  std::string out;
  int jobs = 0;
  int verify_inherited = MeasurementOptions().verify_inherited;
  bool json = false;
  bool quiet = false;

  // `command`: "bisect" or "timeline"; names the result file, as bisect.json.
  void AddOptions(CLI::App& app, const std::string& command);

  AxisKind kind() const;
  // The one cell that the selection names, once the sandbox is there. `observer` must outlive it.
  absl::StatusOr<OneCell> LoadCell(RunObserver& observer) const;
  // Creates the run directory. Without --out, its name depends on command, cell and `what`, which
  // distinguishes searches of one cell.
  absl::StatusOr<RunDirectory> MakeDirectory(const std::string& command, const PlannedCell& cell,
                                             const std::string& what) const;
  // For all runs of the search.
  absl::StatusOr<std::unique_ptr<CellExecutor>> Workers(const OneCell& cell,
                                                        const RunDirectory& directory,
                                                        RunObserver& observer,
                                                        const InterruptSignals& signals) const;
  SearchSetup SetupOf(const RunDirectory& directory, const HistoryAxis& axis) const;
  // Writes COMMAND.json, and prints it or the summary.
  absl::Status Report(const std::string& command, const RunDirectory& directory,
                      const OrderedJson& result, const std::string& summary) const;

 private:
  // Without an executor, which Workers brings.
  MeasurementOptions Measurement() const;
};

}  // namespace bkm

#endif  // HARNESS_CLI_SEARCH_OPTIONS_H_
