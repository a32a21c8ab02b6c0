// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/bundle/packed_cells.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/staging_folder.h"
#include "harness/base/status_macros.h"
#include "harness/base/version.h"
#include "harness/bundle/cell_packer.h"
#include "harness/bundle/packed_trees.h"
#include "harness/model/engine_kind.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<std::string> WriteParts(const std::vector<PreparedCell>& cells,
                                       const PackSettings& settings, const fs::path& path) {
  ASSIGN_OR_RETURN(PartFile parts, PartFile::Open(path));
  std::string bundle;
  RETURN_IF_ERROR(parts.Transact([&]() -> absl::Status {
    CellPacker packer(parts);
    BundleManifest manifest = EmptyManifest(settings);
    for (const PreparedCell& cell : cells) RETURN_IF_ERROR(packer.Add(cell, manifest));
    const std::string text = DocumentText(manifest);
    RETURN_IF_ERROR(ReadManifest(text, "the bundle").status());
    RETURN_IF_ERROR(CheckAsBundle(manifest, "the bundle"));
    ASSIGN_OR_RETURN(bundle, parts.Add(text));
    return parts.SetName(kManifestName, bundle);
  }));
  return bundle;
}

// "2.13.0" of "2.13.0+cpu".
std::string WithoutLocal(const std::string& version) {
  return version.substr(0, version.find('+'));
}

std::optional<Subject> SubjectOf(const std::optional<PackedSubject>& packed) {
  if (!packed) return std::nullopt;
  return Subject{.package = packed->package, .content = packed->content};
}

}  // namespace

BundleManifest EmptyManifest(const PackSettings& settings) {
  return {.bkm = kVersion,
          .matrix = settings.matrix,
          .cell_code = settings.cell_code,
          .limits = settings.limits};
}

absl::StatusOr<std::string> WriteBundle(const std::vector<PreparedCell>& cells,
                                        const PackSettings& settings, const fs::path& path) {
  const fs::path target = fs::absolute(path);
  std::error_code error;
  if (fs::is_directory(target, error))
    return absl::InvalidArgumentError(absl::StrCat(path.string(), " is a folder"));
  RETURN_IF_ERROR(CreateDirectories(target.parent_path()));
  ASSIGN_OR_RETURN(const StagingFolder staging,
                   StagingFolder::Create(target.parent_path(), "pack"));
  const fs::path made = staging.path() / "bundle";
  ASSIGN_OR_RETURN(std::string bundle, WriteParts(cells, settings, made));
  if (::rename(made.c_str(), target.c_str()) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot write ", path.string(), ": ", std::strerror(errno)));
  }
  return bundle;
}

absl::Status PackedCells::ReadTree(const PartFile& file,
                                   const std::optional<PackedSubject>& subject) {
  if (!subject || subject->tree.empty() || trees_.contains(subject->tree)) return absl::OkStatus();
  std::string& text = texts_[subject->tree];
  ASSIGN_OR_RETURN(text, file.Read(subject->tree));
  ASSIGN_OR_RETURN(
      PackedTree tree,
      ReadPackedTree(text, absl::StrCat(file.path().string(), ": the part ", subject->tree)));
  listings_[subject->tree] = std::make_shared<const TreeListing>(ListingOf(tree));
  trees_[subject->tree] = std::make_shared<const PackedTree>(std::move(tree));
  return absl::OkStatus();
}

absl::StatusOr<PackedCells> PackedCells::Read(const PartFile& file) {
  ASSIGN_OR_RETURN(const std::string bundle, file.PartOf(kManifestName));
  ASSIGN_OR_RETURN(const std::string text, file.Read(bundle));
  ASSIGN_OR_RETURN(PackedCells cells, Read(file, text));
  RETURN_IF_ERROR(
      CheckAsBundle(cells.manifest_, absl::StrCat(file.path().string(), ": the manifest")));
  return cells;
}

absl::StatusOr<PackedCells> PackedCells::Read(const PartFile& file, const std::string& manifest) {
  const std::string origin = file.path().string();
  PackedCells cells;
  cells.bundle_ = Sha256(manifest);
  cells.texts_[cells.bundle_] = manifest;
  ASSIGN_OR_RETURN(cells.manifest_, ReadManifest(manifest, absl::StrCat(origin, ": the manifest")));
  for (const auto& [key, part] : cells.manifest_.locks) {
    ASSIGN_OR_RETURN(cells.texts_[part], file.Read(part));
    const std::string place = absl::StrCat(origin, ": the part ", part);
    ASSIGN_OR_RETURN(const RuntimeLock lock, ReadPackedLock(cells.texts_[part], place));
    if (lock.Key() != key) return absl::DataLossError(absl::StrCat(place, " is another lock"));
    cells.locks_[key] = std::make_shared<const RuntimeLock>(lock);
  }
  for (const auto& [folder, part] : cells.manifest_.probes) {
    ASSIGN_OR_RETURN(cells.texts_[part], file.Read(part));
    cells.probes_[folder] = cells.texts_[part];
  }
  for (const PackedCell& cell : cells.manifest_.cells) {
    RETURN_IF_ERROR(cells.ReadTree(file, cell.engine));
    RETURN_IF_ERROR(cells.ReadTree(file, cell.library));
  }
  return cells;
}

absl::Status PackedCells::CopyTo(PartFile& file) const {
  return file.Transact([&]() -> absl::Status {
    for (const auto& [part, text] : texts_) RETURN_IF_ERROR(file.Add(text).status());
    return file.SetName(kManifestName, bundle_);
  });
}

std::shared_ptr<const RuntimeLock> PackedCells::LockOf(const PackedCell& cell) const {
  const auto found = locks_.find(cell.record.lock);
  return found == locks_.end() ? nullptr : found->second;
}

PreparedCell PackedCells::CellIn(const PackedCell& packed,
                                 std::shared_ptr<const RuntimeLock> lock) const {
  PreparedCell cell;
  cell.record = packed.record;
  cell.engine = SubjectOf(packed.engine);
  cell.library = SubjectOf(packed.library);
  if (packed.engine && packed.engine->listed)
    cell.engine_listing = listings_.at(packed.engine->tree);
  if (packed.library && packed.library->listed)
    cell.library_listing = listings_.at(packed.library->tree);
  cell.probe_folder = packed.probe;  // a key contains the name only
  // ReadManifest has checked it.
  if (!packed.stopped.is_null()) cell.stopped = *CellFacts::FromJson(packed.stopped, "manifest");
  if (!lock || cell.stopped) return cell;
  CellRecord& record = cell.record;
  if (lock->Key() != record.lock) {
    record.lock = lock->Key();
    record.cell.lock = record.lock.substr(0, 12);
    record.cell.torch = WithoutLocal(lock->VersionOf("torch"));
    record.id = CellId(record.cell);
    record.dir = CellDirectory(record.cell, record.id);
  }
  const EngineKind& kind = *FindEngineKind(record.cell.engine);
  if (kind.library_in_runtime) record.library_version = lock->VersionOf(kind.library_source);
  cell.worker.key = record.lock;
  cell.lock = std::move(lock);
  return cell;
}

std::map<std::string, const PackedCell*> ById(const BundleManifest& manifest) {
  std::map<std::string, const PackedCell*> cells;
  for (const PackedCell& cell : manifest.cells) cells[cell.record.id] = &cell;
  return cells;
}

std::string KeyOf(const PreparedCell& cell, const TaskSettings& settings) {
  return MakeRequest(cell, "", settings)["key"].get<std::string>();
}

}  // namespace bkm
