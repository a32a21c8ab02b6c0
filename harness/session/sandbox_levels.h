// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SESSION_SANDBOX_LEVELS_H_
#define HARNESS_SESSION_SANDBOX_LEVELS_H_

#include <array>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "harness/model/sandbox_level.h"
#include "harness/runner/installation.h"

namespace bkm {

// Which sandbox levels this machine offers. The worker tries each protection.
class SandboxLevels {
 public:
  // Asks `cell_worker sandbox-levels`.
  static absl::StatusOr<SandboxLevels> Ask(const Installation& installation);
  // Reads its answer.
  static absl::StatusOr<SandboxLevels> Parse(const std::string& answer);

  // FailedPrecondition if the level is not available: a sentence for each missing protection, and
  // the weaker level to ask for.
  absl::Status Check(SandboxLevel level) const;
  SandboxLevel Strongest() const;
  // Why `level` is not available, a sentence for each missing protection.
  const std::vector<std::string>& Missing(SandboxLevel level) const;

 private:
  struct Level {
    bool available = false;
    std::vector<std::string> missing;
  };
  const Level& Of(SandboxLevel level) const { return levels_[static_cast<size_t>(level)]; }

  std::array<Level, 3> levels_;
};

// Fails unless this machine offers the level. Call it before anything of a subject is prepared.
absl::Status CheckSandbox(const Installation& installation, SandboxLevel level);

}  // namespace bkm

#endif  // HARNESS_SESSION_SANDBOX_LEVELS_H_
