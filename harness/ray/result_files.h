// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_RAY_RESULT_FILES_H_
#define HARNESS_RAY_RESULT_FILES_H_

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/json.h"

namespace bkm {

// Content on its way between bkm and a node: {"sha256":..., "data": base64}.
Json PartJson(absl::string_view content);
// The content. DataLoss unless it is what its SHA-256 says.
absl::StatusOr<std::string> PartOfJson(const Json& json);

// The files of a cell's folder that it leaves as evidence, and where they belong.
using ResultFiles = std::vector<std::pair<std::string, std::string>>;  // path, content

// The evidence in the folder of a cell that has ended, as [{"path":..., "sha256":..., "data":...}].
absl::StatusOr<Json> ReadResultFiles(const std::filesystem::path& folder);
// Checks each path and each content: nothing but evidence gets into a cell's folder.
absl::StatusOr<ResultFiles> ResultFilesOf(const Json& json);
absl::Status WriteResultFiles(const ResultFiles& files, const std::filesystem::path& folder);

}  // namespace bkm

#endif  // HARNESS_RAY_RESULT_FILES_H_
