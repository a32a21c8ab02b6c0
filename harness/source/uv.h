// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_UV_H_
#define HARNESS_SOURCE_UV_H_

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/subprocess.h"

namespace bkm {

// The variables of this process that tell a program where packages come from and how to reach them:
// index, find-links, cache, proxy, certificates, credentials. uv and our downloads get these alone.
std::map<std::string, std::string> PackageSourceEnvironment();

// How to run a program in the sandbox of cells.
struct BuildSandbox {
  std::filesystem::path worker;  // cell_worker; empty: nothing can be built
  std::string level = "full";    // full, weak or off
};

// One call of uv.
struct UvRequest {
  std::vector<std::string> arguments;
  std::string input = {};
  std::vector<std::string> unset_env = {};
  std::vector<std::filesystem::path> find_links = {};  // added to those of the user
  // Packages that uv may choose by their source distributions, as if they required nothing. Only
  // for `pip compile`, which then neither fetches nor builds them.
  std::vector<std::string> from_source = {};
  bool verbose = false;  // for RejectedPackages
};

// The package resolver and installer uv (https://docs.astral.sh/uv), run as a program. The user's
// settings decide where packages come from (UV_FIND_LINKS, UV_INDEX, a user-level uv.toml); uv gets
// no other variable of this process, and no uv.toml of the current folder. uv never builds a
// package: that would run the package's code. SourceBuilds does it in a sandbox.
class Uv {
 public:
  explicit Uv(std::filesystem::path program) : program_(std::move(program)) {}

  // Looks at $BKM_UV, then for uv in PATH, then for uv-env/bin/uv in the cache folder.
  // FailedPrecondition when there is none.
  static absl::StatusOr<Uv> Find();
  const std::filesystem::path& program() const { return program_; }

  // Runs `uv ARGUMENTS`. A non-zero exit code is data: see ErrorOf. An installation runs once: see
  // InstallAnew.
  absl::StatusOr<ProcessResult> Run(const UvRequest& request) const;
  absl::StatusOr<ProcessResult> Run(const std::vector<std::string>& arguments,
                                    std::string input = "",
                                    std::vector<std::string> unset_env = {}) const;

  // Like Run, for a `pip compile --no-deps`: also finds packages that have only a source
  // distribution. Their requirements do not matter, so nothing is built.
  absl::StatusOr<ProcessResult> LookUp(const std::vector<std::string>& arguments,
                                       std::string input) const;

  // Where SourceBuilds builds packages.
  Uv& BuildIn(BuildSandbox sandbox) {
    sandbox_ = std::move(sandbox);
    return *this;
  }
  const BuildSandbox& sandbox() const { return sandbox_; }

 private:
  std::filesystem::path program_;
  BuildSandbox sandbox_;
};

// The packages that uv could not choose because they have no wheel: sorted, normalised names.
std::vector<std::string> LacksWheels(const ProcessResult& result);

// Whether uv failed because the requirements contradict each other or name something that does not
// exist.
bool IsNoSolution(const ProcessResult& result);

// The packages of which a verbose `pip compile` looked at a version that it could not take, such as
// one without a wheel: sorted, normalised names. It may have taken another version without a word.
std::vector<std::string> RejectedPackages(const ProcessResult& result);

// Why uv failed, in one line.
std::string UvComplaint(const ProcessResult& result);

// Ok for a run that succeeded. Turns a failed one into an error that says what to do: Unavailable
// (network, or a signal ended uv), ResourceExhausted (disk), DeadlineExceeded (uv took too long),
// NotFound (no solution), Internal (anything else). The message starts with `doing`.
absl::Status ErrorOf(const ProcessResult& result, absl::string_view doing);

// Runs an installation into `folder`. uv takes a package for installed whose files it had begun to
// write when it was killed, so an installation that was killed (SIGKILL: the machine lacks memory,
// or a person ends it) starts again in an empty folder, up to three times in all.
absl::StatusOr<ProcessResult> InstallAnew(
    const std::filesystem::path& folder,
    const std::function<absl::StatusOr<ProcessResult>()>& install);

// Of a `pip install` of pinned packages. Like ErrorOf, but Aborted for what is neither the
// network's nor this machine's fault: a package is broken.
absl::Status InstallationStatus(const ProcessResult& result, absl::string_view doing);

// {"--torch-backend", backend}, or nothing when `backend` is empty or the environment says where
// torch comes from: find-links, another index or another backend.
std::vector<std::string> TorchBackendArguments(absl::string_view backend);

// The arguments that hide files uploaded at `cutoff` (RFC 3339) or later, except those of the
// packages in `exempt`. None when `cutoff` is empty.
std::vector<std::string> CutoffArguments(const std::string& cutoff,
                                         const std::vector<std::string>& exempt);

}  // namespace bkm

#endif  // HARNESS_SOURCE_UV_H_
