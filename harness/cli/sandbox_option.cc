// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cli/sandbox_option.h"

#include "harness/base/status_macros.h"
#include "harness/session/sandbox_levels.h"

namespace bkm {

void SandboxOption::AddTo(CLI::App& app) {
  app.add_option("--sandbox", name_,
                 "How well cells are kept from this machine: full, weak (without namespaces) or "
                 "off. The command stops if the machine does not offer the level "
                 "(default: $BKM_SANDBOX, else full)")
      ->envname("BKM_SANDBOX")
      ->check(CLI::IsMember(SandboxLevelNames()));
}

SandboxLevel SandboxOption::level() const {
  return SandboxLevelFromName(name_).value_or(SandboxLevel::kFull);
}

absl::Status SandboxOption::Check(const Installation& installation) const {
  RETURN_IF_ERROR(installation.CheckBuilt());
  return CheckSandbox(installation, level());
}

absl::Status SandboxOption::Check() const {
  ASSIGN_OR_RETURN(const Installation installation, Installation::Find());
  return Check(installation);
}

}  // namespace bkm
