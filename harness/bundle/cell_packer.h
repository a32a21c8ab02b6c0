// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BUNDLE_CELL_PACKER_H_
#define HARNESS_BUNDLE_CELL_PACKER_H_

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "harness/bundle/manifest.h"
#include "harness/bundle/part_file.h"
#include "harness/runner/task.h"

namespace bkm {

// Packs what prepared cells need: each source tree once.
class CellPacker {
 public:
  explicit CellPacker(PartFile& parts) : parts_(parts) {}

  // Adds the cell to the manifest, and the parts that it names to the file.
  absl::Status Add(const PreparedCell& cell, BundleManifest& manifest);

 private:
  absl::StatusOr<std::optional<PackedSubject>> Pack(const std::optional<Subject>& subject,
                                                    const TreeListing* listing);

  PartFile& parts_;
  std::map<std::pair<std::filesystem::path, std::string>, std::string> trees_;  // -> part
};

}  // namespace bkm

#endif  // HARNESS_BUNDLE_CELL_PACKER_H_
