// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// runner_bench CELLS plans and runs cells that end at once, and prints the seconds of each part as
// JSON: what the harness itself costs. Nothing of it depends on subjects. ci/bench-runner runs it.
#include <sys/resource.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/matrix/plan.h"
#include "harness/runner/judging.h"
#include "harness/runner/runner.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// Ends each cell when it is asked, in the order of their starts.
class InstantExecutor : public CellExecutor {
 public:
  int running() const override { return static_cast<int>(in_flight_.size()); }
  void Start(const CellTask& task) override {
    ++started;
    in_flight_.push_back(task.id);
  }
  WaitResult WaitAny(std::chrono::milliseconds) override {
    if (in_flight_.empty()) return DeadlinePassed{};
    const std::string id = std::exchange(in_flight_.front(), {});
    in_flight_.pop_front();
    return CellFinished{
        id, CellFacts::OfReport({{"schema", 1},
                                 {"ending", {{"kind", "completed"}}},
                                 {"stages", {{{"stage", "import"}, {"seconds", 0.1}}}}})};
  }
  void Release(const std::string&) override {}
  void CancelAll() override {}

  int started = 0;

 private:
  std::deque<std::string> in_flight_;
};

class NothingStored : public StoredObservations {
 public:
  std::optional<KeptObservation> Find(const PreparedCell&) override { return std::nullopt; }
  void Keep(const PreparedCell&, const CellFacts&, const Json&, const fs::path&) override {}
  void Discard(const KeptObservation&) override {}
};

// The verdicts of real judging, which finds no numbers in such cells.
class FilesJudge : public CellJudge {
 public:
  FilesJudge(RunJudge& judge, const RunRecord& run) : judge_(judge), run_(run) {}
  absl::Status Observe(const PreparedCell&, const Observation&) override {
    return absl::OkStatus();
  }
  absl::StatusOr<std::optional<Verdict>> Judge(const CellRecord& cell) override {
    return judge_.JudgeCell(run_, cell);
  }
  int Advance(int) override { return 0; }

 private:
  RunJudge& judge_;
  const RunRecord& run_;
};

// At least `cells` cells: engines x libraries, 25 runtimes.
absl::StatusOr<std::vector<PlannedCell>> PlanCells(int cells) {
  Json engines = Json::array(), libraries = Json::array();
  const int each = static_cast<int>(std::ceil(std::sqrt(cells)));
  for (int i = 0; i < each; ++i) {
    engines.push_back(absl::StrCat("path:/engines/", i));
    libraries.push_back(absl::StrCat("path:/libraries/", i));
  }
  ASSIGN_OR_RETURN(const Matrix matrix,
                   MatrixFromJson({{"schema", 1},
                                   {"name", "bench"},
                                   {"groups",
                                    {{{"engine", {{"kind", "fixture"}, {"subjects", engines}}},
                                      {"library", libraries},
                                      {"runtime", {"bare"}},
                                      {"probe", {{"attention", {"flex"}}, {"steps", 1}}}}}}},
                                  "runner_bench"));
  const PlanEnvironment environment{
      .resolve = [](const SubjectSpec& spec) -> absl::StatusOr<Subject> {
        return Subject{.spec = spec};
      },
      .torch_of_runtime = [](const std::string&) -> absl::StatusOr<std::string> { return ""; }};
  ASSIGN_OR_RETURN(std::vector<PlannedCell> plan, ExpandMatrix(matrix, {}, environment));
  if (static_cast<int>(plan.size()) > cells) plan.resize(cells);
  return plan;
}

std::vector<PreparedCell> Prepared(const std::vector<PlannedCell>& plan) {
  std::vector<PreparedCell> cells;
  for (size_t i = 0; i < plan.size(); ++i) {
    PreparedCell& cell = cells.emplace_back();
    cell.record.cell = plan[i].cell;
    cell.record.id = plan[i].id;
    cell.record.dir = CellDirectory(plan[i].cell, plan[i].id);
    // Cells with equal trees would stand for each other.
    cell.engine = Subject{.spec = *plan[i].cell.engine_subject, .content = absl::StrCat(i)};
    cell.worker.key = cell.record.lock = absl::StrCat("runtime ", i % 25);
  }
  return cells;
}

absl::Status Bench(int count) {
  const RealClock clock;
  absl::Duration last = clock.Elapsed();
  const auto seconds = [&] {
    const absl::Duration now = clock.Elapsed();
    return absl::ToDoubleSeconds(now - std::exchange(last, now));
  };
  const char* temporary = std::getenv("TMPDIR");
  ASSIGN_OR_RETURN(const fs::path folder,
                   CreateTempDirectory(temporary ? temporary : "/tmp", "runner-bench-"));
  const RunDirectory directory(folder);
  ASSIGN_OR_RETURN(const std::vector<PlannedCell> plan, PlanCells(count));
  OrderedJson times = {{"cells", plan.size()}, {"plan_s", seconds()}};

  NothingStored stored;
  NoFeed feed;
  RunObserver observer;
  RunRecord run{.matrix = "bench"};
  RunJudge run_judge(directory);
  FilesJudge judge(run_judge, run);
  const auto measure = [&](const char* name) -> absl::Status {
    InstantExecutor executor;
    run = RunRecord{.matrix = "bench"};
    Runner runner({.slots = 2}, {directory, executor, judge, stored, feed, observer, clock});
    ReadyCells cells(Prepared(plan));
    seconds();
    RETURN_IF_ERROR(runner.Run(cells, run).status());
    times[name] = seconds();
    times[absl::StrCat(name, "_started")] = executor.started;
    return absl::OkStatus();
  };
  const auto judge_all = [&](const char* name) -> absl::Status {
    run.finished = true;
    RETURN_IF_ERROR(run_judge.JudgeRun(run));
    times[name] = seconds();
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(measure("run_s"));
  RETURN_IF_ERROR(judge_all("judge_and_table_s"));
  // The same command again.
  RETURN_IF_ERROR(measure("take_stored_s"));
  RETURN_IF_ERROR(judge_all("judge_stored_s"));
  struct rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  times["peak_mib"] = usage.ru_maxrss / 1024;
  std::printf("%s\n", times.dump().c_str());
  return RemoveTree(folder);
}

}  // namespace
}  // namespace bkm

int main(int argc, char** argv) {
  const int count = argc == 2 ? std::atoi(argv[1]) : 0;
  if (count < 1) {
    std::fprintf(stderr, "usage: runner_bench CELLS\n");
    return 2;
  }
  const absl::Status status = bkm::Bench(count);
  if (status.ok()) return 0;
  std::fprintf(stderr, "runner_bench: %s\n", std::string(status.message()).c_str());
  return 2;
}
