// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/bundle/evidence.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"
#include "harness/bundle/manifest.h"
#include "harness/runner/stored_observations.h"

namespace bkm {
namespace {

// As the sandbox allows. The files that an observation may name are at most so large
// (AdmittedCell).
constexpr size_t kMostTensorFiles = 20'000;
constexpr int64_t kLargestTensorFile = 64 << 20;

}  // namespace

absl::StatusOr<std::vector<std::string>> EvidenceIn(const FolderReader& reader) {
  std::vector<std::string> paths = {"observation.json", kObservedFile, "stdout", "stderr"};
  ASSIGN_OR_RETURN(const auto tensors, reader.List("tensors", kMostTensorFiles));
  for (const FolderReader::Entry& entry : tensors) {
    if (entry.is_regular && entry.links == 1 && entry.bytes <= kLargestTensorFile &&
        IsEvidenceName(entry.name))
      paths.push_back(absl::StrCat("tensors/", entry.name));
  }
  return paths;
}

}  // namespace bkm
