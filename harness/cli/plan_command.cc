// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/cli/command.h"
#include "harness/cli/console.h"
#include "harness/cli/console_observer.h"
#include "harness/cli/selection.h"
#include "harness/runner/preparation.h"

namespace bkm {
namespace {

class PlanCommand : public CliCommand {
 public:
  const char* name() const override { return "plan"; }
  const char* summary() const override {
    return "List the cells of a matrix, and why each is included or excluded; runs nothing";
  }
  const char* examples() const override {
    return "Control cells are not listed: a run adds them when the blame for a red cell depends "
           "on one.\n"
           "Example: bkm plan matrices/bkm.json --filter attention=flex";
  }

  void AddOptions(CLI::App& app) override {
    selection_.AddOptions(app);
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
    ASSIGN_OR_RETURN(const std::vector<PlannedCell> cells,
                     ExpandMatrix(matrix, filters, preparation->Environment()));
    json_ ? PrintJson(matrix, cells) : PrintText(cells);
    return kExitAsExpected;
  }

 private:
  static void PrintJson(const Matrix& matrix, const std::vector<PlannedCell>& cells) {
    OrderedJson list = OrderedJson::array();
    for (const PlannedCell& cell : cells) {
      list.push_back({{"id", cell.id}, {"included", cell.included}, {"why", cell.why}});
      if (!cell.unsupported.empty()) list.back()["unsupported"] = cell.unsupported;
    }
    Print(ToText(OrderedJson{{"schema", 1}, {"matrix", matrix.name}, {"cells", list}}));
  }

  static void PrintText(const std::vector<PlannedCell>& cells) {
    int included = 0;
    for (const PlannedCell& cell : cells) {
      included += cell.included;
      const std::string note =
          cell.unsupported.empty() ? cell.why : absl::StrCat("unsupported: ", cell.unsupported);
      Printf("%s %s%s%s\n", cell.included ? "in " : "out", cell.id.c_str(),
             note.empty() ? "" : "  # ", note.c_str());
    }
    Printf("%d of %zu cells are included\n", included, cells.size());
  }

  Selection selection_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakePlanCommand() { return std::make_unique<PlanCommand>(); }

}  // namespace bkm
