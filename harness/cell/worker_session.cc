// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/worker_session.h"

#include <sys/prctl.h>

#include <chrono>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/cell/capabilities.h"
#include "harness/cell/channel.h"
#include "harness/cell/private_descriptor.h"
#include "harness/cell/sandbox_levels.h"
#include "harness/cell/seccomp_filter.h"
#include "harness/cell/server.h"
#include "harness/cell/system_error.h"
#include "harness/cell/worker_settings.h"

namespace bkm {
namespace {

constexpr size_t kLongestOrder = 16 << 20;

// From now on, no program that a preloaded package starts gets any right, and the packages
// themselves lose what no cell's sandbox needs.
absl::Status ConfineWorker(SandboxLevel level) {
  if (level == SandboxLevel::kOff) return absl::OkStatus();
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return SystemError("no-new-privileges: cannot refuse new privileges");
  RETURN_IF_ERROR(ClearAmbientCapabilities());
  return InstallSeccompFilter(Filtered::kWorker);
}

// The settings, and what came behind them.
absl::StatusOr<WorkerSettings> ReadSettings(Channel& channel, std::vector<Packet>& packets) {
  while (packets.empty()) {
    if (!channel.Receive(packets))
      return absl::UnavailableError("the supervisor ended before it sent the settings");
  }
  const Packet first = std::move(packets.front());
  packets.erase(packets.begin());
  ASSIGN_OR_RETURN(const Json json, ParseJson(first.text, "settings"));
  return WorkerSettingsFrom(json);
}

absl::Status Serve(Channel& channel, const WorkerPython& python) {
  std::vector<Packet> packets;
  ASSIGN_OR_RETURN(const WorkerSettings settings, ReadSettings(channel, packets));
  RETURN_IF_ERROR(ConfineWorker(settings.sandbox.level));
  // While the process is small: would a cell get its sandbox?
  const absl::StatusOr<std::vector<std::string>> protections =
      TrySandbox(settings.sandbox, settings.trial_user);
  if (!protections.ok()) return LevelNotAvailable(settings.sandbox.level, protections.status());
  const InterpreterOptions interpreter = {.python = settings.python,
                                          .python_code = settings.python_code,
                                          .preload = settings.preload,
                                          .bytecode = settings.bytecode};
  ServerOptions options;
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(InterpreterReport facts, python.start(interpreter));
  facts.preload_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  options.setting.body = python.run;
  options.setting.fork = python.fork;
  channel.Send(ToLine({{"type", "ready"},
                       {"python", facts.version},
                       {"versions", facts.versions},
                       {"preload_s", facts.preload_s},
                       {"protections", *protections},
                       {"uncompiled", facts.uncompiled},
                       {"preload_errors", facts.preload_errors}}));
  options.jobs = static_cast<size_t>(settings.jobs);
  options.versions = facts.versions;
  options.setting.sandbox = settings.sandbox;
  Server(std::move(options), std::move(channel), std::move(packets)).Run();
  return absl::OkStatus();
}

}  // namespace

int RunWorker(const WorkerPython& python) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Channel channel(ToPrivate(Descriptor(kWorkerChannel)), kLongestOrder);
  const absl::Status status = Serve(channel, python);
  if (status.ok()) return 0;
  channel.Send(ToLine({{"type", "fatal"}, {"message", std::string(status.message())}}));
  return 2;
}

}  // namespace bkm
