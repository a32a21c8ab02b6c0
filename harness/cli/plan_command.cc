// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/cli/console.h"
#include "harness/cli/console_observer.h"
#include "harness/cli/plan_options.h"
#include "harness/cli/run_commands.h"
#include "harness/cli/selection.h"
#include "harness/runner/installation.h"
#include "harness/runner/preparation.h"

namespace bkm {
namespace {

class PlanCommand : public CliCommand {
 public:
  explicit PlanCommand(UrgencyOrder urgent_first) : options_(urgent_first) {}

  const char* name() const override { return "plan"; }
  const char* summary() const override {
    return "List the cells of a matrix, and why each is included or excluded; runs nothing";
  }
  const char* examples() const override {
    return "Control cells are not listed: a run adds them when the blame for a red cell depends "
           "on one.\n"
           "Examples:\n"
           "  bkm plan matrices/bkm.json --filter attention=flex\n"
           "  bkm plan matrices/bkm.json --cover 2";
  }

  void AddOptions(CLI::App& app) override {
    selection_.AddOptions(app);
    options_.AddTo(app);
    app.add_flag("--json", json_, "Print JSON");
  }

  absl::StatusOr<int> Run() override {
    ASSIGN_OR_RETURN(const Matrix matrix, selection_.LoadMatrix());
    ASSIGN_OR_RETURN(const std::vector<CellFilter> filters, selection_.Filters());
    ConsoleObserver observer(/*quiet=*/json_);
    ASSIGN_OR_RETURN(const std::unique_ptr<Preparation> preparation,
                     Preparation::Create(matrix,
                                         {.mirrors = selection_.GitMirrors(),
                                          .matrix_folder = selection_.MatrixFolder()},
                                         observer));
    ASSIGN_OR_RETURN(std::vector<PlannedCell> cells,
                     ExpandMatrix(matrix, filters, preparation->Environment()));
    ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
    ASSIGN_OR_RETURN(const PlanOptions::Applied applied, options_.Apply(installation, cells));
    json_ ? PrintJson(matrix, cells, applied) : PrintText(cells, applied);
    return kExitAsExpected;
  }

 private:
  static void PrintJson(const Matrix& matrix, const std::vector<PlannedCell>& cells,
                        const PlanOptions::Applied& applied) {
    OrderedJson list = OrderedJson::array();
    for (const PlannedCell& cell : cells) {
      list.push_back({{"id", cell.id}, {"included", cell.included}, {"why", cell.why}});
      if (!cell.note.empty()) list.back()["note"] = cell.note;
      if (cell.is_stopped()) list.back()["unsupported"] = cell.WhyStopped();
    }
    OrderedJson json = {{"schema", 1}, {"matrix", matrix.name}, {"cells", list}};
    if (applied.cover) json["cover"] = CoverJson(*applied.cover);
    Print(ToText(json));
  }

  static void PrintText(const std::vector<PlannedCell>& cells,
                        const PlanOptions::Applied& applied) {
    int included = 0, filtered = 0;
    for (const PlannedCell& cell : cells) {
      included += cell.included;
      if (cell.why == kNotMatched) {
        ++filtered;
        continue;
      }
      const std::string note = cell.is_stopped()
                                   ? absl::StrCat("unsupported: ", cell.WhyStopped())
                                   : absl::StrCat(cell.why, cell.why.empty() ? cell.note : "");
      Printf("%s %s%s%s\n", cell.included ? "in " : "out", cell.id.c_str(),
             note.empty() ? "" : "  # ", note.c_str());
    }
    Printf("%d of %zu cells are included", included, cells.size());
    if (filtered > 0) Printf(" (not shown: %d %s)", filtered, kNotMatched);
    Printf("\n%s", applied.Text().c_str());
  }

  Selection selection_;
  PlanOptions options_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakePlanCommand(UrgencyOrder urgent_first) {
  return std::make_unique<PlanCommand>(urgent_first);
}

}  // namespace bkm
