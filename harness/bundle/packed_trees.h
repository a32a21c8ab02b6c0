// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BUNDLE_PACKED_TREES_H_
#define HARNESS_BUNDLE_PACKED_TREES_H_

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "harness/bundle/manifest.h"
#include "harness/bundle/part_file.h"
#include "harness/source/tree_listing.h"
#include "harness/store/folder_cache.h"

namespace bkm {

// Adds the files of the source tree `folder` to `parts`. `listing` says which; null: those that are
// there now. Returns the part of the PackedTree.
absl::StatusOr<std::string> PackTree(const std::filesystem::path& folder,
                                     const TreeListing* listing, PartFile& parts);

// The listing of a packed tree: that of the tree that was packed.
TreeListing ListingOf(const PackedTree& tree);

// Writes the files of a tree into the empty folder `tree`. A link that leads out of the tree
// becomes a dead one.
absl::Status WriteTree(const PackedTree& packed, const PartFile& parts,
                       const std::filesystem::path& tree);

// The key of PlaceTree's folder among the cached trees.
std::string PlacedTreeKey(const std::string& part, const std::string& package,
                          const std::string& python_version);

// The folder of a packed tree among the cached trees, with its Python compiled by `python`. It is
// named by content, so that what a bundle brings never stands for a tree that bkm made itself.
// `part`: of `packed`. `package`: what is compiled; empty: nothing.
absl::StatusOr<std::filesystem::path> PlaceTree(const FolderCache& trees, const std::string& part,
                                                const PackedTree& packed, const PartFile& parts,
                                                const std::string& package,
                                                const std::filesystem::path& python,
                                                const std::string& python_version);

}  // namespace bkm

#endif  // HARNESS_BUNDLE_PACKED_TREES_H_
