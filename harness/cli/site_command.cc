// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <chrono>

#include "harness/base/status_macros.h"
#include "harness/cli/all_commands.h"
#include "harness/cli/console.h"
#include "harness/publish/rows.h"
#include "harness/runner/installation.h"
#include "harness/site/site.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

class SiteCommand : public CliCommand {
 public:
  const char* name() const override { return "site"; }
  const char* summary() const override {
    return "Write static web pages from finished runs: what to install, and the evidence";
  }
  const char* examples() const override {
    return "The pages need no server and load nothing from other hosts. An existing site in the "
           "folder is replaced when the new one is complete.\n"
           "Examples:\n"
           "  bkm site site --run runs/bkm\n"
           "  bkm site site --run runs/bkm,runs/history --table table/table.json --map "
           "maps/verl-torchtitan/map.json --history runs/bisect --detection "
           "golden/detection/selftest.json --mutation mutation.json";
  }

  void AddOptions(CLI::App& app) override {
    app.add_option("out", out_, "Folder of the site")->required();
    app.add_option("--run", runs_, "Finished run directories")->delimiter(',')->required();
    app.add_option("--table", table_,
                   "table.json of bkm publish or its folder, for locks and ranges (default: made "
                   "from the runs)");
    app.add_option("--map", map_, "map.json of bkm map or its folder");
    app.add_option("--history", history_,
                   "bisect.json, timeline.json or peel.json, or their run directories")
        ->delimiter(',');
    app.add_option("--detection", detection_,
                   "Detection table: output of bkm selftest --json, or a file in golden/detection");
    app.add_option("--mutation", mutation_,
                   "Output of bkm selftest --mutate --json: how many changes of the subjects' "
                   "sources turn red");
    app.add_flag("--json", json_, "Print a report as JSON");
  }

  absl::StatusOr<int> Run() override {
    const auto start = std::chrono::steady_clock::now();
    SiteContent content;
    for (const std::string& run : runs_) RETURN_IF_ERROR(content.runs.Add(run));
    ASSIGN_OR_RETURN(content.table, Table());
    RETURN_IF_ERROR(ReadExtras(content));
    ASSIGN_OR_RETURN(const SiteReport report, WriteSite(content, out_));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const fs::path index = fs::path(out_) / "index.html";
    if (json_) {
      Print(ToText(OrderedJson{{"schema", 1},
                               {"index", index.string()},
                               {"pages", report.pages},
                               {"cells", report.cells},
                               {"bytes", report.bytes}}));
    } else {
      Printf("%d pages of %d cells in %.1f s: %s\n", report.pages, report.cells, seconds.count(),
             index.c_str());
    }
    return kExitAsExpected;
  }

 private:
  absl::StatusOr<SiteTable> Table() const {
    const std::string today = Today();
    if (!table_.empty()) return ReadSiteTable(table_, today);
    return TableOfRuns(std::vector<fs::path>(runs_.begin(), runs_.end()), today);
  }

  absl::Status ReadExtras(SiteContent& content) const {
    for (const std::string& path : history_) {
      ASSIGN_OR_RETURN(content.history.emplace_back(), ReadHistoryLog(path));
    }
    if (!map_.empty()) {
      std::error_code error;
      const fs::path path =
          fs::is_directory(map_, error) ? fs::path(map_) / "map.json" : fs::path(map_);
      ASSIGN_OR_RETURN(content.map, ReadApiMap(path));
    }
    if (!detection_.empty()) {
      ASSIGN_OR_RETURN(content.detections, ReadDetections(detection_));
      ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
      ASSIGN_OR_RETURN(content.catalogue, ReadCatalogue(installation.catalogue()));
    }
    if (!mutation_.empty()) {
      ASSIGN_OR_RETURN(content.mutated, ReadMutationReport(mutation_));
    }
    return absl::OkStatus();
  }

  std::string out_;
  std::vector<std::string> runs_;
  std::string table_;
  std::string map_;
  std::vector<std::string> history_;
  std::string detection_;
  std::string mutation_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<CliCommand> MakeSiteCommand() { return std::make_unique<SiteCommand>(); }

}  // namespace bkm
