// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/cell_files.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "harness/base/folder_reader.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// A step of the largest model here has 4 MB; the relations of 8 layers over 2,000 tokens have 32.
constexpr int64_t kMostBytes = 64 << 20;
constexpr size_t kMostFiles = 20'000;

absl::Status CheckFiles(const Observation& observation, const fs::path& cell_dir) {
  std::vector<std::string> named;
  if (!observation.attended.empty()) named.push_back(kRelationsFile);
  for (const auto& forward : {observation.forward_only, observation.forward_in_fp32}) {
    if (forward) named.push_back(forward->tensors);
  }
  if (observation.exported) named.push_back(observation.exported->tensors);
  for (const auto* steps : {&observation.steps, &observation.resumed}) {
    for (const ObservedStep& step : *steps) {
      if (!step.tensors.empty()) named.push_back(step.tensors);
    }
  }
  if (named.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto entries, FolderReader(cell_dir).List("tensors", kMostFiles));
  std::map<std::string, int64_t> links;
  for (const FolderReader::Entry& entry : entries) links["tensors/" + entry.name] = entry.links;
  for (const std::string& file : named) {
    RETURN_IF_ERROR(OpenCellTensors(cell_dir, file).status());
    // A second name lies outside, where others may change the file.
    if (links[file] != 1)
      return absl::InvalidArgumentError(absl::StrCat(file, " is a hard link to another file"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SafetensorsFile> OpenCellTensors(const fs::path& cell_dir, absl::string_view file) {
  ASSIGN_OR_RETURN(std::string bytes, FolderReader(cell_dir).Read(file, kMostBytes));
  return SafetensorsFile::FromBytes(std::move(bytes), cell_dir / std::string(file));
}

CellFacts AdmittedCell(CellFacts reported, const fs::path& cell_dir) {
  if (reported.ending().kind != EndingKind::kCompleted) return reported;
  const absl::Status checked = CheckFiles(reported.seen(), cell_dir);
  if (checked.ok()) return reported;
  // The run's folder may move, and the message with it.
  return reported.Malformed(
      absl::StrReplaceAll(checked.message(), {{cell_dir.string() + "/", ""}}));
}

}  // namespace bkm
