// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RAY_RAY_ENVIRONMENT_H_
#define HARNESS_RAY_RAY_ENVIRONMENT_H_

#include <filesystem>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace bkm {

// The one version of Ray that the driver runs with. A cluster must run the same.
inline constexpr char kRayVersion[] = "2.60.0";

// Where the driver runs: an environment of its own, which has Ray and nothing of a cell.
struct RayEnvironment {
  std::filesystem::path python;
  std::filesystem::path code;  // the folder of the package bkm_ray
};

// Makes the environment by uv in the cache, once: about 80 MB.
absl::StatusOr<RayEnvironment> MakeRayEnvironment(
    const std::filesystem::path& cache, const std::filesystem::path& python,
    const std::function<void(const std::string&)>& note);

}  // namespace bkm

#endif  // HARNESS_RAY_RAY_ENVIRONMENT_H_
