// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RUNNER_LIBTORCH_H_
#define HARNESS_RUNNER_LIBTORCH_H_

#include <filesystem>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "harness/runner/installation.h"

namespace bkm {

// The version of LibTorch that reference_worker of this installation needs and does not have.
// Empty: it was linked to one that is on this machine.
std::string LibTorchToFetch(const Installation& installation);

// The folder of LibTorch's shared libraries of that version in the cache; empty: it is not there.
std::filesystem::path FindLibTorch(const std::filesystem::path& cache, const std::string& version);

// The same; installs torch of that version with `python` by uv if it is not there, and says so by
// `note`. Takes minutes; another process that wants the same one waits.
absl::StatusOr<std::filesystem::path> FetchLibTorch(
    const std::filesystem::path& cache, const std::string& version,
    const std::filesystem::path& python, const std::function<void(const std::string&)>& note);

}  // namespace bkm

#endif  // HARNESS_RUNNER_LIBTORCH_H_
