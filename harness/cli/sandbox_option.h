// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CLI_SANDBOX_OPTION_H_
#define HARNESS_CLI_SANDBOX_OPTION_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "harness/model/sandbox_level.h"
#include "harness/runner/installation.h"

namespace bkm {

// --sandbox of every command that runs cells.
class SandboxOption {
 public:
  void AddTo(CLI::App& app);

  SandboxLevel level() const;
  // Fails unless this machine offers the level. Commands call it before they prepare anything.
  absl::Status Check(const Installation& installation) const;
  absl::Status Check() const;

 private:
  std::string name_ = "full";
};

}  // namespace bkm

#endif  // HARNESS_CLI_SANDBOX_OPTION_H_
