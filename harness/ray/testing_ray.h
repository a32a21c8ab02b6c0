// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RAY_TESTING_RAY_H_
#define HARNESS_RAY_TESTING_RAY_H_

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "harness/ray/ray_environment.h"
#include "harness/runner/installation.h"
#include "harness/testing/bkm_under_test.h"

namespace bkm {

// The real Ray, where `bkm` under test finds it. The first test on a machine installs it into the
// user's cache, which needs a registry.
inline absl::StatusOr<RayEnvironment> RayFor(const BkmUnderTest& bkm) {
  absl::StatusOr<RayEnvironment> made =
      MakeRayEnvironment(CacheDirectory(), CellPython(), [](const std::string&) {});
  if (made.ok()) {
    std::filesystem::create_directories(bkm.folder() / "cache");
    std::filesystem::create_directory_symlink(CacheDirectory() / "ray", bkm.folder() / "cache/ray");
  }
  return made;
}

}  // namespace bkm

#endif  // HARNESS_RAY_TESTING_RAY_H_
