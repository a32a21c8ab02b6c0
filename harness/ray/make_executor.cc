// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/ray/make_executor.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/fields.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/base/version.h"
#include "harness/ray/ray_environment.h"
#include "harness/ray/ray_executor.h"
#include "harness/runner/measured_on.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// Signs of life per lease: one may be late.
constexpr int kBeats = 5;

// What a node's bkm needs to know if it lies where this one lies. The node's own variables win.
std::map<std::string, std::string> EnvironmentOf(const Installation& installation) {
  std::map<std::string, std::string> environment = {{"BKM_ROOT", installation.root.string()},
                                                    {"BKM_BIN", installation.bin.string()}};
  for (const char* name : {"BKM_PYTHON", "BKM_UV"}) {
    if (const char* value = std::getenv(name); value && *value) environment[name] = value;
  }
  return environment;
}

RayDriver DriverOf(const RayEnvironment& environment, const RaySettings& settings, int slots,
                   const RunDirectory& directory) {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return {.command = {.argv = {environment.python.string(), "-m", "bkm_ray.driver", "--address",
                               settings.address, "--cpus", absl::StrCat(slots > 0 ? slots : cores)},
                      .set_env = {{"PYTHONPATH", environment.code.string()},
                                  // Ray would remember each call.
                                  {"RAY_task_events_report_interval_ms", "0"},
                                  {"RAY_USAGE_STATS_ENABLED", "0"}},
                      .unset_env = {"PYTHONHOME", "RAY_ADDRESS"}},
          .log = directory.worker_log("ray")};
}

absl::StatusOr<std::unique_ptr<CellExecutor>> Make(const RaySettings& settings,
                                                   const ExecutorSetup& setup) {
  const Installation& installation = setup.installation;
  const MeasurementOptions& options = setup.options;
  RunObserver& observer = setup.observer;
  const auto note = [&observer](const std::string& what) { observer.OnNote(what); };
  ASSIGN_OR_RETURN(const RayEnvironment environment,
                   MakeRayEnvironment(CacheDirectory(), CellPython(), note));
  ASSIGN_OR_RETURN(const std::string cell_code, installation.CellCodeDigest());
  ASSIGN_OR_RETURN(const WorkMachine machine, ThisMachine(cell_code, options.sandbox));
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  const bool is_own = settings.program.empty();
  DispatchOptions dispatch{
      .ledger = {.lease = settings.lease},
      .server = {is_own ? own.string() : settings.program, "serve"},
      .environment = is_own ? EnvironmentOf(installation) : std::map<std::string, std::string>(),
      .hello = {{"type", "hello"},
                {"bkm", kVersion},
                {"cell_code", cell_code},
                {"sandbox", std::string(Name(options.sandbox))},
                {"fresh", options.fresh},
                {"beat_ms", absl::ToInt64Milliseconds(settings.lease / kBeats)}},
      .labels = settings.labels,
      .may_grow = !settings.address.empty()};
  ASSIGN_OR_RETURN(const fs::path scratch, CreateTempDirectory(CacheDirectory() / "tmp", "ray-"));
  return RayExecutor::Create(
      {.driver = DriverOf(environment, settings, options.slots, setup.directory),
       .dispatch = std::move(dispatch),
       .resources = settings.resources,
       .machine = WriteFields(machine),
       .interrupt_fd = setup.signals.fd(),
       .report = note},
      scratch);
}

}  // namespace

ExecutorMaker RayExecutors(RaySettings settings) {
  return [settings = std::move(settings)](const ExecutorSetup& setup) {
    return Make(settings, setup);
  };
}

}  // namespace bkm
