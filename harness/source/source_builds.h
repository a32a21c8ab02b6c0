// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_SOURCE_BUILDS_H_
#define HARNESS_SOURCE_SOURCE_BUILDS_H_

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/source/package_metadata.h"
#include "harness/source/uv.h"
#include "harness/store/folder_cache.h"

namespace bkm {

// Resolves and installs packages, also those that have only a source distribution. Building one
// runs its code. So it is fetched here together with the packages that build it, built in the
// sandbox of cells, without network and credentials, and offered to uv as a wheel, which the cache
// keeps. So uv chooses the versions that it would choose if it built packages. Thread-safe.
class SourceBuilds {
 public:
  // Builds in `uv.sandbox()`, for `python`.
  SourceBuilds(Uv uv, std::filesystem::path cache, std::filesystem::path python);

  struct Resolved {
    ProcessResult result;
    // If result.ok(). A package that was built stands here with its source distribution, so that
    // the pins are the same on every machine.
    std::vector<PinnedPackage> packages;
  };
  // Runs `uv ARGUMENTS -`, a `pip compile` into a pylock.toml. `cutoff` are those of the arguments
  // that hide newer packages. Aborted: a package does not build.
  absl::StatusOr<Resolved> Compile(const std::vector<std::string>& arguments,
                                   const std::string& requirements,
                                   const std::vector<std::string>& cutoff) const;

  // Runs `uv ARGUMENTS -r -`, a `pip install --require-hashes`, with the lines `pins`
  // ("NAME==VERSION
  // --hash=sha256:..."). Aborted as above.
  absl::StatusOr<ProcessResult> Install(const std::vector<std::string>& arguments,
                                        std::vector<std::string> pins,
                                        const std::vector<std::string>& cutoff) const;

 private:
  struct Built;
  absl::StatusOr<Built> Build(const PinnedPackage& package,
                              const std::vector<std::string>& cutoff) const;
  absl::Status Make(const PinnedPackage& package, const std::vector<std::string>& cutoff,
                    const std::filesystem::path& work, const std::filesystem::path& folder) const;
  absl::Status Download(const PinnedFile& file, const std::filesystem::path& target) const;
  absl::Status InstallBackends(const std::vector<std::string>& requirements,
                               const std::vector<std::string>& cutoff,
                               const std::filesystem::path& folder) const;
  // Runs `COMMAND` of wheel_build.py in the sandbox.
  absl::Status Run(const std::string& command, const std::filesystem::path& sdist,
                   const std::filesystem::path& work, const std::filesystem::path& backends) const;
  // Whether the registry has a wheel of this version that fits here.
  absl::StatusOr<bool> HasWheel(const PinnedPackage& package,
                                const std::vector<std::string>& cutoff) const;
  // The registry's source distribution of the pin "NAME==VERSION --hash=sha256:...".
  absl::StatusOr<PinnedPackage> SourceOf(const std::string& pin,
                                         const std::vector<std::string>& cutoff) const;

  const Uv uv_;
  const std::filesystem::path cache_;
  const std::filesystem::path python_;
  const PackageReader reader_;
  const FolderCache wheels_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, absl::Status> failed_;  // by the key of the wheel's folder
};

}  // namespace bkm

#endif  // HARNESS_SOURCE_SOURCE_BUILDS_H_
