// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/worker_settings.h"

#include "harness/base/status_macros.h"

namespace bkm {

Json ToJson(const WorkerSettings& settings) {
  return {{"python", settings.python.string()},
          {"python_code", settings.python_code.string()},
          {"preload", settings.preload},
          {"bytecode", settings.bytecode.string()},
          {"jobs", settings.jobs},
          {"sandbox", ToJson(settings.sandbox)},
          {"trial_user", settings.trial_user}};
}

absl::StatusOr<WorkerSettings> WorkerSettingsFrom(const Json& json) {
  ObjectReader reader(json, "settings");
  WorkerSettings settings;
  settings.python = reader.String("python");
  settings.python_code = reader.String("python_code");
  settings.preload = reader.Strings("preload");
  settings.bytecode = reader.String("bytecode");
  settings.jobs = reader.Int("jobs", 1, 1, 1 << 16);
  settings.trial_user = static_cast<uid_t>(reader.Int("trial_user", 0, 0, UINT32_MAX));
  const Json* sandbox = reader.Child("sandbox");
  RETURN_IF_ERROR(reader.Finish());
  if (!sandbox) return absl::InvalidArgumentError("settings: $.sandbox is missing");
  ASSIGN_OR_RETURN(settings.sandbox, SandboxFromJson(*sandbox));
  return settings;
}

}  // namespace bkm
