// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_SEARCH_OPTIONS_H_
#define HARNESS_CLI_SEARCH_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "harness/cli/selection.h"
#include "harness/history/search_session.h"
#include "harness/session/one_cell.h"

namespace bkm {

// What the commands that search histories share: which cell, whose history, and where goes what is
// found.
struct SearchOptions {
  Selection selection;
  std::string axis;
  std::string since;  // YYYY-MM-DD; may be empty
  std::string out;
  int jobs = 0;
  bool json = false;
  bool quiet = false;

  // `command`: "bisect", whose result is bisect.json.
  void AddOptions(CLI::App& app, const std::string& command);

  AxisKind kind() const;
  // The cell that the selection names: exactly one. `observer` must outlive it.
  absl::StatusOr<OneCell> LoadCell(RunObserver& observer) const;
  // The run directory, made; without --out one of the command's and the cell's own. `what` tells
  // searches of one cell apart.
  absl::StatusOr<RunDirectory> MakeDirectory(const std::string& command, const PlannedCell& cell,
                                             const std::string& what) const;
  SearchSetup SetupOf(const RunDirectory& directory, const HistoryAxis& axis) const;
  // Writes COMMAND.json, and prints it or the summary.
  absl::Status Report(const std::string& command, const RunDirectory& directory,
                      const OrderedJson& result, const std::string& summary) const;
};

}  // namespace bkm

#endif  // HARNESS_CLI_SEARCH_OPTIONS_H_
