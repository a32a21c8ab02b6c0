// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// ray_bench CELLS JOBS runs cells that end at once through Ray on this machine, JOBS at a time, and
// prints what that costs as JSON. `ray_bench serve` is what a node runs. ci/bench-ray starts it.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/ray/ray_environment.h"
#include "harness/ray/ray_executor.h"
#include "harness/runner/installation.h"
#include "harness/runner/task.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// Answers each cell with an observation.
int Serve() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const absl::StatusOr<Json> message = ParseJson(line, "bench");
    if (!message.ok()) return 1;
    const std::string type = TextOf(*message, "type");
    Json answer;
    if (type == "hello") answer = {{"type", "ready"}, {"machine", Json::object()}};
    if (type == "run") {
      answer = {{"type", "finished"},
                {"lease", (*message)["lease"]},
                {"observation", {{"schema", 1}, {"ending", {{"kind", "completed"}}}}},
                {"observed", nullptr},
                {"facts", nullptr},
                {"files", Json::array()}};
    }
    if (!answer.is_null()) std::cout << ToLine(answer) << '\n' << std::flush;
  }
  return 0;
}

double ResidentMib(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/statm");
  double pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

// The memory of all processes below this one that run Ray's driver, an actor or a server.
double DescendantsMib() {
  std::map<std::string, std::string> parents;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    std::ifstream file(entry.path() / "stat");
    std::string pid, rest, state, parent;
    if (!(file >> pid) || !std::getline(file, rest, ')') || !(file >> state >> parent)) continue;
    parents[pid] = parent;
  }
  double total = 0;
  for (const auto& [pid, parent] : parents) {
    std::string at = pid;
    while (parents.contains(at) && at != absl::StrCat(::getpid())) at = parents.at(at);
    if (at == absl::StrCat(::getpid()) && pid != at) total += ResidentMib(pid);
  }
  return total;
}

Json MemoryNow() {
  return {{"bkm_mib", ResidentMib("self")}, {"ray_and_servers_mib", DescendantsMib()}};
}

PreparedCell BenchCell(int number) {
  PreparedCell cell;
  cell.record.cell.engine = "fixture";
  cell.record.id = absl::StrCat("cell-", number);
  cell.record.lock = "runtime";
  return cell;
}

absl::Status Bench(int cells, int jobs, const std::string& own) {
  const RealClock clock;
  ASSIGN_OR_RETURN(const RayEnvironment environment,
                   MakeRayEnvironment(CacheDirectory(), CellPython(), [](const std::string& what) {
                     std::fprintf(stderr, "%s\n", what.c_str());
                   }));
  ASSIGN_OR_RETURN(const fs::path scratch, CreateTempDirectory(CacheDirectory() / "tmp", "ray-"));
  const absl::Duration start = clock.Elapsed();
  ASSIGN_OR_RETURN(
      const std::unique_ptr<RayExecutor> executor,
      RayExecutor::Create(
          {.driver = {.command = {.argv = {environment.python.string(), "-m", "bkm_ray.driver",
                                           "--cpus", absl::StrCat(jobs)},
                                  .set_env = {{"PYTHONPATH", environment.code.string()},
                                              // Ray would remember each call.
                                              {"RAY_task_events_report_interval_ms", "0"},
                                              {"RAY_USAGE_STATS_ENABLED", "0"}}},
                      .log = scratch / "driver.stderr"},
           .dispatch = {.server = {own, "serve"}, .hello = {{"type", "hello"}}, .may_grow = false},
           .resources = {{"CPU", 1}, {"memory", 0}},
           .machine = Json::object(),
           .report = [](const std::string& what) { std::fprintf(stderr, "%s\n", what.c_str()); }},
          scratch));
  OrderedJson result = {{"cells", cells},
                        {"jobs", jobs},
                        {"start_s", absl::ToDoubleSeconds(clock.Elapsed() - start)}};
  const TaskSettings settings;
  absl::Duration began = clock.Elapsed();
  int started = 0, ended = 0;
  while (ended < cells) {
    while (started < cells && executor->running() < jobs) {
      const PreparedCell cell = BenchCell(started++);
      executor->Start({cell.record.id, {}, MakeRequest(cell, scratch, settings), &cell, &settings});
    }
    const WaitResult wait = executor->WaitAny(std::chrono::seconds(60));
    const auto* cell = std::get_if<CellFinished>(&wait);
    if (!cell) return absl::DeadlineExceededError("no cell ended within a minute");
    if (cell->facts.ending().kind != EndingKind::kCompleted)
      return absl::InternalError(ToLine(cell->facts.json()));
    ++ended;
    // The first cells wait for the actor.
    if (ended == jobs) began = clock.Elapsed();
    if (ended == cells / 10) result["memory_at_a_tenth"] = MemoryNow();
  }
  const double seconds = absl::ToDoubleSeconds(clock.Elapsed() - began);
  result["memory_at_the_end"] = MemoryNow();
  result["seconds"] = seconds;
  result["cells_per_s"] = (cells - jobs) / seconds;
  result["ms_per_cell"] = seconds * 1000 / (cells - jobs);
  std::printf("%s\n", result.dump().c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace bkm

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "serve") return bkm::Serve();
  const int cells = argc == 3 ? std::atoi(argv[1]) : 0;
  const int jobs = argc == 3 ? std::atoi(argv[2]) : 0;
  if (jobs < 1 || cells < 10 * jobs) {
    std::fprintf(stderr, "usage: ray_bench CELLS JOBS, with CELLS at least 10 x JOBS\n");
    return 2;
  }
  std::error_code error;
  const absl::Status status =
      bkm::Bench(cells, jobs, std::filesystem::read_symlink("/proc/self/exe", error));
  if (!status.ok()) std::fprintf(stderr, "ray_bench: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 2;
}
