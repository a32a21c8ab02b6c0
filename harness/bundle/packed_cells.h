// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BUNDLE_PACKED_CELLS_H_
#define HARNESS_BUNDLE_PACKED_CELLS_H_

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/bundle/manifest.h"
#include "harness/bundle/part_file.h"
#include "harness/runner/task.h"

namespace bkm {

// Names in the two kinds of file.
inline constexpr char kManifestName[] = "manifest";
inline constexpr char kSkippedName[] = "skipped";
inline constexpr char kResultPrefix[] = "result/";

struct PackSettings {
  std::string matrix;  // name
  CellLimits limits;
  std::string cell_code;
};

// The manifest of a bundle without cells.
BundleManifest EmptyManifest(const PackSettings& settings);

// Writes a bundle of prepared cells; an older file of that name is replaced as a whole. Returns the
// part of the manifest, which identifies the bundle.
absl::StatusOr<std::string> WriteBundle(const std::vector<PreparedCell>& cells,
                                        const PackSettings& settings,
                                        const std::filesystem::path& path);

// What says which cells a bundle has, without the content of its sources: the manifest, and the
// listings of the trees, the locks and the probes' checksums. A file of results holds a copy.
class PackedCells {
 public:
  // Of a bundle, or of a file of results.
  static absl::StatusOr<PackedCells> Read(const PartFile& file);
  // Of the text of a manifest whose parts are in `file`.
  static absl::StatusOr<PackedCells> Read(const PartFile& file, const std::string& manifest);
  // Adds a copy to a file of results.
  absl::Status CopyTo(PartFile& file) const;

  const std::string& bundle() const { return bundle_; }  // the manifest's part
  const BundleManifest& manifest() const { return manifest_; }
  // Null for a cell that is stopped.
  std::shared_ptr<const RuntimeLock> LockOf(const PackedCell& cell) const;
  const PackedTree& tree(const std::string& part) const { return *trees_.at(part); }
  // The text of the manifest of a probe's folder (harness/store/checksums.h).
  const std::string& probe(const std::string& folder) const { return probes_.at(folder); }

  // The cell as it runs in `lock`, without paths of this machine. In a lock that is not its own it
  // is another cell, whose id names that lock and its version of torch.
  PreparedCell CellIn(const PackedCell& cell, std::shared_ptr<const RuntimeLock> lock) const;

 private:
  absl::Status ReadTree(const PartFile& file, const std::optional<PackedSubject>& subject);

  std::string bundle_;
  BundleManifest manifest_;
  std::map<std::string, std::string> texts_;                         // copied parts
  std::map<std::string, std::shared_ptr<const RuntimeLock>> locks_;  // by key
  std::map<std::string, std::shared_ptr<const PackedTree>> trees_;   // by part
  std::map<std::string, std::shared_ptr<const TreeListing>> listings_;
  std::map<std::string, std::string> probes_;  // by folder
};

// The packed cells by id.
std::map<std::string, const PackedCell*> ById(const BundleManifest& manifest);

// The key of the cell's request (harness/runner/task.h).
std::string KeyOf(const PreparedCell& cell, const TaskSettings& settings);

}  // namespace bkm

#endif  // HARNESS_BUNDLE_PACKED_CELLS_H_
