// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/bundle/pack.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/console.h"
#include "harness/cli/console_observer.h"
#include "harness/cli/selection.h"
#include "harness/report/command_text.h"
#include "harness/runner/preparation.h"
#include "harness/session/interrupt.h"
#include "harness/session/measurement.h"
#include "harness/session/recorded_cell.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

class PackCommand : public CliCommand {
 public:
  const char* name() const override { return "pack"; }
  const char* summary() const override {
    return "Pack cells into one file, which another machine runs with bkm work";
  }
  const char* examples() const override {
    return "The file holds the sources, the locks and the numbers that probes are drawn from. It "
           "holds neither torch nor weights.\n"
           "MATRIX can also be a run directory: its cells are packed with the locks that they "
           "have there.\n"
           "Runs no cell and creates no environment.\n"
           "Examples:\n"
           "  bkm pack matrices/quickstart.json --out cells.bkm\n"
           "  bkm pack runs/quickstart --filter attention=flex --out cells.bkm";
  }

  void AddOptions(CLI::App& app) override {
    selection_.AddOptions(app);
    app.add_option("--out", out_, "The file to write")->required();
    app.add_flag("--json", json_, "Print JSON");
  }

  absl::StatusOr<int> Run() override {
    ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
    RETURN_IF_ERROR(installation.CheckBuilt());
    ASSIGN_OR_RETURN(const std::vector<CellFilter> filters, selection_.Filters());
    ConsoleObserver observer(/*quiet=*/json_);
    InterruptSignals signals;
    std::error_code error;
    const bool is_run = fs::is_directory(selection_.MatrixFile(), error);
    const RunDirectory directory(selection_.MatrixFile());
    ASSIGN_OR_RETURN(const Matrix matrix,
                     is_run ? MatrixOfRun(directory) : selection_.LoadMatrix());
    ASSIGN_OR_RETURN(
        const std::unique_ptr<Preparation> preparation,
        Preparation::Create(matrix,
                            {.mirrors = selection_.GitMirrors(),
                             .matrix_folder = is_run ? fs::path() : selection_.MatrixFolder(),
                             .environments = false},
                            observer));
    absl::StatusOr<std::vector<PlannedCell>> plan =
        is_run ? PlanOfRun(directory, filters)
               : ExpandMatrix(matrix, filters, preparation->Environment());
    RETURN_IF_ERROR(plan.status());
    const std::vector<PlannedCell> included = Included(*plan);
    if (included.empty())
      return absl::InvalidArgumentError("no cell is included: bkm plan shows why");
    absl::StatusOr<std::vector<PreparedCell>> cells =
        is_run ? PrepareRun(directory, included, *preparation, [&] { return signals.heard(); })
               : PrepareAll(included, *preparation, signals);
    if (signals.heard()) {
      PrintErrorf("bkm: interrupted; nothing was packed, and fetched files are kept\n");
      return kExitInterrupted;
    }
    RETURN_IF_ERROR(cells.status());
    ASSIGN_OR_RETURN(const PackSummary packed, Pack(installation, matrix, *cells, out_));
    json_ ? PrintJson(packed) : PrintText(packed);
    return kExitAsExpected;
  }

 private:
  void PrintJson(const PackSummary& packed) const {
    Print(ToText(OrderedJson{{"schema", 1},
                             {"file", out_},
                             {"bundle", packed.bundle},
                             {"cells", packed.cells},
                             {"stopped", packed.stopped},
                             {"parts", packed.parts},
                             {"bytes", packed.bytes},
                             {"file_bytes", packed.file_bytes}}));
  }

  void PrintText(const PackSummary& packed) const {
    constexpr double kMib = 1 << 20;
    Printf("%d cells in %s: %.1f MiB, %d parts\n", packed.cells, out_, packed.file_bytes / kMib,
           packed.parts);
    if (packed.stopped > 0)
      Printf("%d of them cannot run anywhere; their result is packed\n", packed.stopped);
    Printf("Run them on another machine: bkm work %s --out results.bkm\n", ShellWord(out_));
  }

  Selection selection_;
  std::string out_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakePackCommand() { return std::make_unique<PackCommand>(); }

}  // namespace bkm
