// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/ray/ray_environment.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"
#include "harness/source/uv.h"
#include "harness/store/folder_cache.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr char kDriver[] =
#include "harness/ray/driver_py.inc"
    ;
constexpr char kActor[] =
#include "harness/ray/actor_py.inc"
    ;

absl::Status Install(const fs::path& python, const fs::path& folder) {
  ASSIGN_OR_RETURN(const Uv uv, Uv::Find());
  const fs::path venv = folder / "venv";
  const std::string doing = absl::StrCat("installing ray ", kRayVersion);
  ASSIGN_OR_RETURN(const ProcessResult result,
                   InstallAnew(folder, [&]() -> absl::StatusOr<ProcessResult> {
                     ASSIGN_OR_RETURN(const ProcessResult made,
                                      uv.Run({"venv", "--python", python.string(), venv.string()}));
                     if (!made.ok()) return made;
                     return uv.Run({"pip", "install", "--python", (venv / "bin/python").string(),
                                    absl::StrCat("ray==", kRayVersion)});
                   }));
  if (!result.ok()) return ErrorOf(result, doing);
  RETURN_IF_ERROR(WriteFile(folder / "code/bkm_ray/__init__.py", ""));
  RETURN_IF_ERROR(WriteFile(folder / "code/bkm_ray/actor.py", kActor));
  return WriteFile(folder / "code/bkm_ray/driver.py", kDriver);
}

}  // namespace

absl::StatusOr<RayEnvironment> MakeRayEnvironment(
    const fs::path& cache, const fs::path& python,
    const std::function<void(const std::string&)>& note) {
  const FolderCache environments(cache / "ray");
  const std::string key = absl::StrCat(
      kRayVersion, "-",
      Sha256(absl::StrCat(python.string(), "\n", kDriver, "\n", kActor)).substr(0, 16));
  const auto make = [&](const fs::path& folder) {
    note(absl::StrCat("installing ray ", kRayVersion, ", once: about 80 MB"));
    return Install(python, folder);
  };
  ASSIGN_OR_RETURN(const fs::path folder, environments.GetOrMake(key, make));
  return RayEnvironment{.python = folder / "venv/bin/python", .code = folder / "code"};
}

}  // namespace bkm
