// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/status_macros.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/console.h"
#include "harness/cli/outcome.h"
#include "harness/report/command_text.h"
#include "harness/report/summary.h"
#include "harness/session/shards.h"

namespace bkm {
namespace {

class MergeCommand : public CliCommand {
 public:
  const char* name() const override { return "merge"; }
  const char* summary() const override { return "Merge the shards of a run into one run"; }
  const char* examples() const override {
    return "The runs are those of bkm run --shard 1/n to n/n, with the same matrix, filters and "
           "build of bkm. Nothing is merged if shards overlap, are missing, are not finished, or "
           "are of another run.\n"
           "Exit 0: merged and judged. Exit 1: a cell is spurious or flaky. Exit 2: the shards do "
           "not fit together.\n"
           "Example: bkm merge runs/one runs/two runs/three --out runs/all";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("runs", runs_, "Run directories of all shards")->required();
    app.add_option("--out", out_, "Run directory to write")->required();
    app.add_flag("--json", json_, "Print run.json instead of the summary");
  }

  absl::StatusOr<int> Run() override {
    ASSIGN_OR_RETURN(const RunRecord run, MergeShards({runs_.begin(), runs_.end()}, out_));
    Print(json_ ? ToText(ToJson(run)) : SummaryText(run));
    if (!json_) Printf("\nDetails of a cell: bkm explain %s CELL\n", ShellWord(out_));
    return ExitCodeOf(run);
  }

 private:
  std::vector<std::string> runs_;
  std::string out_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeMergeCommand() { return std::make_unique<MergeCommand>(); }

}  // namespace bkm
