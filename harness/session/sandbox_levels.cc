// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/session/sandbox_levels.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/base/subprocess.h"

namespace bkm {
namespace {

// Each protection is tried in a process of its own; a healthy machine answers in milliseconds.
constexpr std::chrono::seconds kTimeout(60);

}  // namespace

absl::StatusOr<SandboxLevels> SandboxLevels::Parse(const std::string& answer) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(answer, "cell_worker sandbox-levels"));
  if (!json.is_object())
    return absl::InvalidArgumentError("cell_worker sandbox-levels: an object is needed here");
  ObjectReader reader(json, "cell_worker sandbox-levels");
  SandboxLevels levels;
  for (const std::string& name : SandboxLevelNames()) {
    Level& level = levels.levels_[static_cast<size_t>(*SandboxLevelFromName(name))];
    const Json* const told = reader.Child(name.c_str());
    if (!told || !told->is_object()) {
      return absl::InvalidArgumentError(
          absl::StrCat("cell_worker sandbox-levels: $.", name, ": an object is needed here"));
    }
    ObjectReader one(*told, "cell_worker sandbox-levels", "$." + name);
    level.available = one.Bool("available", false);
    level.missing = one.Strings("missing");
    RETURN_IF_ERROR(one.Finish());
  }
  RETURN_IF_ERROR(reader.Finish());
  return levels;
}

absl::StatusOr<SandboxLevels> SandboxLevels::Ask(const Installation& installation) {
  Command command{.argv = {installation.cell_worker().string(), "sandbox-levels"}};
  command.timeout = kTimeout;
  command.may_run_again = true;
  ASSIGN_OR_RETURN(const ProcessResult result, RunCommand(command));
  if (!result.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(installation.cell_worker().string(),
                     " cannot tell which sandbox levels this machine offers",
                     result.timed_out ? " in time" : "", ": build it again (tools/bkm)"));
  }
  return Parse(result.out);
}

const std::vector<std::string>& SandboxLevels::Missing(SandboxLevel level) const {
  return Of(level).missing;
}

SandboxLevel SandboxLevels::Strongest() const {
  for (const SandboxLevel level : {SandboxLevel::kFull, SandboxLevel::kWeak}) {
    if (Of(level).available) return level;
  }
  return SandboxLevel::kOff;
}

absl::Status SandboxLevels::Check(SandboxLevel level) const {
  if (level == SandboxLevel::kOff || Of(level).available) return absl::OkStatus();
  SandboxLevel weaker = SandboxLevel::kOff;
  if (level == SandboxLevel::kFull && Of(SandboxLevel::kWeak).available)
    weaker = SandboxLevel::kWeak;
  return absl::FailedPreconditionError(
      absl::StrCat("this machine does not offer the sandbox level '", Name(level),
                   "': ", absl::StrJoin(Of(level).missing, "; "), " (--sandbox=", Name(weaker),
                   " runs with less protection: see docs/security.md)"));
}

absl::Status CheckSandbox(const Installation& installation, SandboxLevel level) {
  if (level == SandboxLevel::kOff) return absl::OkStatus();
  ASSIGN_OR_RETURN(const SandboxLevels levels, SandboxLevels::Ask(installation));
  return levels.Check(level);
}

}  // namespace bkm
