// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_UV_H_
#define HARNESS_SOURCE_UV_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/subprocess.h"

namespace bkm {

// The package resolver and installer uv (https://docs.astral.sh/uv), run as a program. The user's
// settings decide where packages come from (UV_FIND_LINKS, UV_INDEX, a user-level uv.toml).
// Settings that would change the result of a resolution (UV_PYTHON, UV_EXCLUDE_NEWER, VIRTUAL_ENV,
// a uv.toml in the current folder) are hidden from uv.
class Uv {
 public:
  explicit Uv(std::filesystem::path program) : program_(std::move(program)) {}

  // Looks at $BKM_UV, then for uv in PATH, then for uv-env/bin/uv in the cache folder.
  // FailedPrecondition when there is none.
  static absl::StatusOr<Uv> Find();

  // Runs `uv ARGUMENTS`. A non-zero exit code is data: see ErrorOf.
  absl::StatusOr<ProcessResult> Run(const std::vector<std::string>& arguments,
                                    std::string input = "",
                                    std::vector<std::string> unset_env = {}) const;

 private:
  std::filesystem::path program_;
};

// Whether uv failed because the requirements contradict each other or name something that does not
// exist.
bool IsNoSolution(const ProcessResult& result);

// Why uv failed, in one line.
std::string UvComplaint(const ProcessResult& result);

// Turns a failed run into an error that says what to do: Unavailable (network), ResourceExhausted
// (disk), NotFound (no solution), Internal (anything else). The message starts with `doing`.
absl::Status ErrorOf(const ProcessResult& result, absl::string_view doing);

// {"--torch-backend", backend}, or nothing when `backend` is empty or the environment says where
// torch comes from: find-links, another index or another backend.
std::vector<std::string> TorchBackendArguments(absl::string_view backend);

// The arguments that hide files uploaded at `cutoff` (RFC 3339) or later, except those of the
// packages in `exempt`. None when `cutoff` is empty.
std::vector<std::string> CutoffArguments(const std::string& cutoff,
                                         const std::vector<std::string>& exempt);

}  // namespace bkm

#endif  // HARNESS_SOURCE_UV_H_
