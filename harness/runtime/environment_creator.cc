// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runtime/environment_creator.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace fs = std::filesystem;

absl::StatusOr<fs::path> EnvironmentCreator::Create(const RuntimeLock& lock) const {
  if (!lock.interpreter.empty()) return lock.interpreter;
  const std::string key =
      absl::StrCat(lock.Key().substr(0, 32), "-", Sha256(python_.string()).substr(0, 6));
  ASSIGN_OR_RETURN(const fs::path folder, environments_.GetOrMake(key, [&](const fs::path& made) {
    return Fill(lock, made);
  }));
  return folder / "bin" / "python";
}

absl::Status EnvironmentCreator::Fill(const RuntimeLock& lock, const fs::path& folder) const {
  ASSIGN_OR_RETURN(const ProcessResult venv,
                   uv_.Run({"venv", "--python", python_.string(), "--no-project",
                            "--allow-existing", folder.string()}));
  if (!venv.ok()) return ErrorOf(venv, "cannot make a virtual environment");
  // Compiled here, once: cells see the environment read-only and would compile at every import.
  std::vector<std::string> arguments = {
      "pip",       "install",          "--python",          (folder / "bin" / "python").string(),
      "--no-deps", "--require-hashes", "--compile-bytecode"};
  if (!lock.cutoff.empty()) {  // what builds a package is as old as the package
    arguments.insert(arguments.end(), {"--exclude-newer", lock.cutoff});
    for (const std::string& name : lock.exempt) {
      arguments.insert(arguments.end(), {"--exclude-newer-package", absl::StrCat(name, "=false")});
    }
  }
  for (const std::string& argument : TorchBackendArguments(lock.torch_backend)) {
    arguments.push_back(argument);
  }
  arguments.insert(arguments.end(), {"-r", "-"});
  ASSIGN_OR_RETURN(const ProcessResult installed, uv_.Run(arguments, lock.RequirementsText()));
  if (installed.ok()) return absl::OkStatus();
  const std::string doing = absl::StrCat("cannot install the packages of runtime ", lock.runtime);
  if (absl::StrContains(installed.err, "Failed to build")) {
    return absl::AbortedError(absl::StrCat(doing, ": ", UvComplaint(installed)));
  }
  return ErrorOf(installed, doing);
}

}  // namespace bkm
