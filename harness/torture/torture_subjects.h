// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_TORTURE_TORTURE_SUBJECTS_H_
#define HARNESS_TORTURE_TORTURE_SUBJECTS_H_

#include <filesystem>

#include "absl/status/statusor.h"

namespace bkm {

// Writes fake pairs below `folder` and returns their matrix: six pairs of folders, which pass,
// fail, refuse, exit, take long, and start a program; and four commits of a repository,
// `folder`/mirrors/NAME.git, whose observations other runs take over.
absl::StatusOr<std::filesystem::path> WriteTortureSubjects(const std::filesystem::path& folder);

}  // namespace bkm

#endif  // HARNESS_TORTURE_TORTURE_SUBJECTS_H_
