// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runtime/environment_creator.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"
#include "harness/runtime/bytecode.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

constexpr char kLockFile[] = "bkm-lock.json";  // the lock of an environment, kept in it

fs::path SitePackages(const fs::path& environment, const RuntimeLock& lock) {
  return environment / "lib" / absl::StrCat("python", lock.python) / "site-packages";
}

std::set<std::pair<std::string, std::vector<std::string>>> FilesOf(const RuntimeLock& lock) {
  std::set<std::pair<std::string, std::vector<std::string>>> files;
  for (const LockedPackage& package : lock.packages) files.emplace(package.name, package.sha256);
  return files;
}

// The environment below `root` that has the most packages in common with `lock`; empty when there
// is none. It may be unfinished or about to be removed, so the caller must check each file it uses.
fs::path MostSimilar(const fs::path& root, const RuntimeLock& lock) {
  const auto wanted = FilesOf(lock);
  fs::path best;
  size_t most = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
    const absl::StatusOr<Json> json = ReadJsonFile(entry.path() / kLockFile);
    if (!json.ok()) continue;
    const absl::StatusOr<RuntimeLock> other = RuntimeLockFromJson(*json, kLockFile);
    if (!other.ok() || other->python != lock.python) continue;
    size_t common = 0;
    for (const auto& file : FilesOf(*other)) common += wanted.count(file);
    if (common > most) most = common, best = entry.path();
  }
  return best;
}

}  // namespace

std::string EnvironmentCreator::KeyOf(const RuntimeLock& lock) const {
  return absl::StrCat(lock.Key().substr(0, 32), "-", Sha256(python_.string()).substr(0, 6));
}

std::optional<fs::path> EnvironmentCreator::Find(const RuntimeLock& lock) const {
  if (!lock.interpreter.empty()) return lock.interpreter;
  const std::optional<fs::path> folder = environments_.Get(KeyOf(lock));
  return folder ? std::optional<fs::path>(*folder / "bin" / "python") : std::nullopt;
}

absl::StatusOr<fs::path> EnvironmentCreator::Create(const RuntimeLock& lock) const {
  if (!lock.interpreter.empty()) return lock.interpreter;
  ASSIGN_OR_RETURN(
      const fs::path folder,
      environments_.GetOrMake(KeyOf(lock), [&](const fs::path& made) { return Fill(lock, made); }));
  return folder / "bin" / "python";
}

absl::Status EnvironmentCreator::Fill(const RuntimeLock& lock, const fs::path& folder) const {
  std::vector<std::string> arguments = {"pip",       "install",
                                        "--python",  (folder / "bin" / "python").string(),
                                        "--no-deps", "--require-hashes"};
  // With the cutoff, the packages that build a package are as old as the package.
  const std::vector<std::string> cutoff = CutoffArguments(lock.cutoff, lock.exempt);
  arguments.insert(arguments.end(), cutoff.begin(), cutoff.end());
  for (const std::string& argument : TorchBackendArguments(lock.torch_backend))
    arguments.push_back(argument);
  const auto install = [&]() -> absl::StatusOr<ProcessResult> {
    const std::lock_guard<std::mutex> installing(installing_);
    ASSIGN_OR_RETURN(const ProcessResult venv,
                     uv_.Run({"venv", "--python", python_.string(), "--no-project",
                              "--allow-existing", folder.string()}));
    if (!venv.ok()) return ErrorOf(venv, "cannot make a virtual environment");
    return builds_.Install(
        arguments, absl::StrSplit(lock.RequirementsText(), '\n', absl::SkipEmpty()), cutoff);
  };
  ASSIGN_OR_RETURN(const ProcessResult installed, InstallAnew(folder, install));
  RETURN_IF_ERROR(InstallationStatus(
      installed, absl::StrCat("cannot install the packages of runtime ", lock.runtime)));
  // Compile now, once: cells have the environment read-only and would compile at every import.
  const std::lock_guard<std::mutex> compiling(compiling_);
  const fs::path site = SitePackages(folder, lock);
  const fs::path sibling = MostSimilar(environments_.root(), lock);
  if (!sibling.empty()) LinkBytecode(SitePackages(sibling, lock), site, lock.python);
  RETURN_IF_ERROR(CompileBytecode(python_, site));
  return WriteFile(folder / kLockFile, ToText(ToJson(lock)));
}

}  // namespace bkm
