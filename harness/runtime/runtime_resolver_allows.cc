// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Decides whether a runtime that was resolved for one pair fits another.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"
#include "harness/runtime/runtime_resolver.h"
#include "harness/source/requirement_policy.h"
#include "harness/store/checksums.h"

namespace bkm {
namespace fs = std::filesystem;

absl::StatusOr<bool> RuntimeResolver::Allows(const RuntimeRequest& request,
                                             const RuntimeLock& lock) const {
  if (request.policy.policy == PolicyKind::kLocked ||
      request.policy.policy == PolicyKind::kExisting)
    return true;
  std::vector<std::string> declared = DeclaredRequirements(request);
  // The lock meets the requirements that it was resolved from.
  std::erase_if(declared, [&](const std::string& requirement) {
    const auto is_relaxed = [&](const std::string& name) {
      return NormalizedName(name) == RequirementName(requirement);
    };
    return std::count(lock.requirements.begin(), lock.requirements.end(), requirement) > 0 ||
           std::any_of(request.relax.begin(), request.relax.end(), is_relaxed);
  });
  if (declared.empty()) return true;
  RETURN_IF_ERROR(CheckRequirements(declared));
  const fs::path cached =
      options_.cache / "locks" /
      absl::StrCat(Sha256(ToLine(Json{{"lock", lock.Key()}, {"declared", declared}})), ".allows");
  const absl::StatusOr<std::string> known = ReadKeptFile(cached, options_.report);
  if (known.ok() && (*known == "yes" || *known == "no")) return *known == "yes";
  ASSIGN_OR_RETURN(const fs::path folder,
                   CreateTempDirectory(options_.cache / "tmp", "constraints-"));
  std::string pins;
  for (const LockedPackage& package : lock.packages)
    absl::StrAppend(&pins, package.name, "==", package.version, "\n");
  RETURN_IF_ERROR(WriteFile(folder / "constraints.txt", pins));
  std::vector<std::string> arguments = {"pip",           "compile",
                                        "--python",      options_.python.string(),
                                        "--format",      "pylock.toml",
                                        "--no-header",   "--no-deps",
                                        "--constraints", (folder / "constraints.txt").string()};
  for (const std::string& argument : TorchBackendArguments(lock.torch_backend))
    arguments.push_back(argument);
  arguments.push_back("-");
  const absl::StatusOr<ProcessResult> result = uv_.LookUp(arguments, absl::StrJoin(declared, "\n"));
  RemoveTree(folder).IgnoreError();
  RETURN_IF_ERROR(result.status());
  if (!result->ok() && !IsNoSolution(*result))
    return ErrorOf(*result, absl::StrCat("cannot look up whether the runtime meets ",
                                         absl::StrJoin(declared, ", ")));
  bool allows = result->ok();
  if (allows) {
    ASSIGN_OR_RETURN(const std::vector<PinnedPackage> packages, reader_.ReadPylock(result->out));
    // A constraint does not reject a package that the lock lacks.
    allows = std::all_of(packages.begin(), packages.end(), [&](const PinnedPackage& package) {
      return !lock.VersionOf(NormalizedName(package.name)).empty();
    });
  }
  RETURN_IF_ERROR(WriteKeptFile(cached, allows ? "yes" : "no"));
  return allows;
}

}  // namespace bkm
