// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/ray/result_files.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "harness/base/files.h"
#include "harness/base/folder_reader.h"
#include "harness/base/hash.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/bundle/evidence.h"
#include "harness/bundle/manifest.h"
#include "harness/bundle/part_file.h"
#include "harness/runner/stored_observations.h"

namespace bkm {
namespace {

// The observation and what was seen from outside travel as JSON of their own.
bool IsFile(absl::string_view path) { return path != "observation.json" && path != kObservedFile; }

bool IsEvidencePath(absl::string_view path) {
  if (path == "stdout" || path == "stderr") return true;
  return absl::ConsumePrefix(&path, "tensors/") && IsEvidenceName(path);
}

}  // namespace

Json PartJson(absl::string_view content) {
  return {{"sha256", Sha256(content)}, {"data", absl::Base64Escape(content)}};
}

absl::StatusOr<std::string> PartOfJson(const Json& json) {
  std::string content;
  const Json& data = MemberOf(json, "data");
  if (!data.is_string() || !absl::Base64Unescape(data.get_ref<const std::string&>(), &content) ||
      Sha256(content) != TextOf(json, "sha256")) {
    return absl::DataLossError(
        absl::StrCat("the part ", TextOf(json, "sha256", "?"), " was damaged on its way"));
  }
  return content;
}

absl::StatusOr<Json> ReadResultFiles(const std::filesystem::path& folder) {
  const FolderReader reader(folder);
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, EvidenceIn(reader));
  Json files = Json::array();
  for (const std::string& path : paths) {
    if (!IsFile(path)) continue;
    const absl::StatusOr<std::string> content = reader.Read(path, PartFile::kLargestPart);
    if (absl::IsNotFound(content.status())) continue;
    RETURN_IF_ERROR(content.status());
    Json file = PartJson(*content);
    file["path"] = path;
    files.push_back(std::move(file));
  }
  return files;
}

absl::StatusOr<ResultFiles> ResultFilesOf(const Json& json) {
  ResultFiles files;
  if (!json.is_array()) return absl::DataLossError("a result has no list of files");
  for (const Json& file : json) {
    const std::string path = TextOf(file, "path");
    if (!IsEvidencePath(path))
      return absl::DataLossError(absl::StrCat("a result has a file that is not evidence: ", path));
    ASSIGN_OR_RETURN(std::string content, PartOfJson(file));
    files.emplace_back(path, std::move(content));
  }
  return files;
}

absl::Status WriteResultFiles(const ResultFiles& files, const std::filesystem::path& folder) {
  for (const auto& [path, content] : files)
    RETURN_IF_ERROR(WriteScratchFile(folder / path, content));
  return absl::OkStatus();
}

}  // namespace bkm
