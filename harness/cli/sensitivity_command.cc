// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/console.h"
#include "harness/judge/numbers_check.h"
#include "harness/report/labels.h"
#include "harness/report/sensitivity_table.h"
#include "harness/runner/references.h"
#include "harness/runner/run_directory.h"

namespace bkm {
namespace {

class SensitivityCommand : public CliCommand {
 public:
  const char* name() const override { return "sensitivity"; }
  const char* summary() const override {
    return "Show the smallest errors that the checks of a run can see";
  }
  const char* examples() const override {
    return "Reads the goldens, floors and verdicts of the run; runs nothing. The floor of "
           "log-probs "
           "and loss is that of the type in which a cell reports them. Masks, settings and types "
           "are exact and have no smallest error.\n"
           "Example: bkm sensitivity runs/bkm";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("run", run_, "Run directory")->required();
    app.add_flag("--json", json_, "Print JSON, with the gradient of each tensor");
  }

  absl::StatusOr<int> Run() override {
    const RunDirectory directory(run_);
    ASSIGN_OR_RETURN(const RunRecord run, directory.ReadRun());
    // By files and types.
    std::map<std::tuple<std::string, std::string, ReportTypes>, SensitivityRow> rows;
    int of_older_versions = 0;
    for (const CellRecord& cell : run.cells) {
      const Probe& probe = cell.cell.probe;
      ASSIGN_OR_RETURN(const std::optional<Verdict> verdict, directory.ReadVerdict(cell));
      const Finding* numbers = verdict ? verdict->Find("numbers") : nullptr;
      if (numbers == nullptr) continue;
      const std::optional<ReportTypes> types = FactsOf<NumbersFacts>(numbers).reported_in_fp32;
      if (!types) {
        ++of_older_versions;
        continue;
      }
      const std::string golden_file = GoldenFile(probe);
      const std::string floor_file = FloorFile(probe, probe.precision);
      const std::tuple key(golden_file, floor_file, *types);
      const auto found = rows.find(key);
      const std::string options = OptionsText(cell.cell);
      if (found != rows.end()) {
        SensitivityRow& row = found->second;
        ++row.cells;
        if (options.size() < row.options.size()) row.options = options;
        continue;
      }
      const auto golden = ReadGoldenFile(directory.reference(golden_file));
      const auto floor = ReadFloorFile(directory.reference(floor_file));
      if (!golden.ok() || !floor.ok()) continue;
      rows.emplace(key,
                   SensitivityRow{.model = probe.model,
                                  .precision = probe.precision,
                                  .types = *types,
                                  .options = options,
                                  .cells = 1,
                                  .sensitivity = SensitivityOf(
                                      *golden, *floor, AverageMultiple(probe.precision), *types)});
    }
    if (of_older_versions > 0)
      PrintErrorf("bkm: an older bkm judged %d cells, which are left out: run bkm judge %s\n",
                  of_older_versions, run_.c_str());
    if (rows.empty())
      return absl::NotFoundError(absl::StrCat(
          run_, " has no goldens and floors: no cell of it got as far as its numbers"));
    std::vector<SensitivityRow> sorted;
    for (auto& [key, row] : rows) sorted.push_back(std::move(row));
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return std::tie(a.model, a.precision, a.options, a.types) <
             std::tie(b.model, b.precision, b.options, b.types);
    });
    Print(json_ ? ToText(SensitivityJson(sorted)) : SensitivityText(sorted));
    return kExitAsExpected;
  }

 private:
  std::string run_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeSensitivityCommand() {
  return std::make_unique<SensitivityCommand>();
}

}  // namespace bkm
