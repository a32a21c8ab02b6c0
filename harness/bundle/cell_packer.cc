// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/bundle/cell_packer.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/bundle/packed_trees.h"
#include "harness/source/tree_digest.h"
#include "harness/store/checksums.h"

namespace bkm {

namespace fs = std::filesystem;

absl::Status CellPacker::Add(const PreparedCell& cell, BundleManifest& manifest) {
  PackedCell packed{.record = cell.record};
  packed.record.verdict.reset();
  ASSIGN_OR_RETURN(packed.engine, Pack(cell.engine, cell.engine_listing.get()));
  ASSIGN_OR_RETURN(packed.library, Pack(cell.library, cell.library_listing.get()));
  if (cell.stopped) {
    packed.stopped = cell.stopped->json();
  } else if (cell.lock) {
    ASSIGN_OR_RETURN(manifest.locks[cell.lock->Key()], parts_.Add(ToText(ToJson(*cell.lock))));
  }
  if (!cell.probe_folder.empty()) {
    packed.probe = cell.probe_folder.filename().string();
    ASSIGN_OR_RETURN(const std::string sums, ReadFile(cell.probe_folder / kManifestFile));
    ASSIGN_OR_RETURN(manifest.probes[packed.probe], parts_.Add(sums));
  }
  manifest.cells.push_back(std::move(packed));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<PackedSubject>> CellPacker::Pack(const std::optional<Subject>& subject,
                                                              const TreeListing* listing) {
  if (!subject) return std::optional<PackedSubject>();
  PackedSubject packed{
      .package = subject->package, .content = subject->content, .listed = listing != nullptr};
  if (subject->tree.empty()) return std::optional<PackedSubject>(packed);
  std::string& part = trees_[{subject->tree, subject->content}];
  if (part.empty()) {
    ASSIGN_OR_RETURN(part, PackTree(subject->tree, listing, parts_));
    // A user's folder may change while it is read.
    if (absl::StartsWith(subject->content, "tree:")) {
      ASSIGN_OR_RETURN(const std::string now, TreeDigest(subject->tree / subject->package));
      if (subject->content != absl::StrCat("tree:", now)) {
        return absl::AbortedError(
            absl::StrCat(subject->tree.string(), " changed while it was packed: pack it again"));
      }
    }
  }
  packed.tree = part;
  const fs::path home = subject->tree.lexically_relative(CacheDirectory() / "trees");
  if (!home.empty() && *home.begin() != "..") packed.home = home.string();
  return std::optional<PackedSubject>(std::move(packed));
}

}  // namespace bkm
