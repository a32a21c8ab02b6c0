// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/bundle/packed_cells.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/base/version.h"
#include "harness/bundle/packed_trees.h"
#include "harness/model/engine_kind.h"
#include "harness/source/tree_digest.h"
#include "harness/store/checksums.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// Collects what the cells of one bundle need.
class Packer {
 public:
  Packer(const PackSettings& settings, PartFile& parts) : parts_(parts) {
    manifest_.bkm = kVersion;
    manifest_.matrix = settings.matrix;
    manifest_.cell_code = settings.cell_code;
    manifest_.limits = settings.limits;
  }

  absl::Status Add(const PreparedCell& cell) {
    PackedCell packed{.record = cell.record};
    packed.record.verdict.reset();
    ASSIGN_OR_RETURN(packed.engine, Pack(cell.engine, cell.engine_listing.get()));
    ASSIGN_OR_RETURN(packed.library, Pack(cell.library, cell.library_listing.get()));
    if (cell.stopped) {
      packed.stopped = *cell.stopped;
    } else if (cell.lock) {
      ASSIGN_OR_RETURN(manifest_.locks[cell.lock->Key()], parts_.Add(ToText(ToJson(*cell.lock))));
    }
    if (!cell.probe_folder.empty()) {
      packed.probe = cell.probe_folder.filename().string();
      ASSIGN_OR_RETURN(const std::string sums, ReadFile(cell.probe_folder / kManifestFile));
      ASSIGN_OR_RETURN(manifest_.probes[packed.probe], parts_.Add(sums));
    }
    manifest_.cells.push_back(std::move(packed));
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Finish() {
    const std::string text = DocumentText(manifest_);
    RETURN_IF_ERROR(ReadManifest(text, "the bundle").status());
    ASSIGN_OR_RETURN(std::string part, parts_.Add(text));
    RETURN_IF_ERROR(parts_.SetName(kManifestName, part));
    return part;
  }

 private:
  absl::StatusOr<std::optional<PackedSubject>> Pack(const std::optional<Subject>& subject,
                                                    const TreeListing* listing) {
    if (!subject) return std::optional<PackedSubject>();
    PackedSubject packed{
        .package = subject->package, .content = subject->content, .listed = listing != nullptr};
    if (subject->tree.empty()) return std::optional<PackedSubject>(packed);
    std::string& part = trees_[subject->tree];
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

  PartFile& parts_;
  BundleManifest manifest_;
  std::map<fs::path, std::string> trees_;
};

absl::StatusOr<std::string> WriteParts(const std::vector<PreparedCell>& cells,
                                       const PackSettings& settings, const fs::path& path) {
  ASSIGN_OR_RETURN(PartFile parts, PartFile::Open(path));
  std::string bundle;
  RETURN_IF_ERROR(parts.Transact([&]() -> absl::Status {
    Packer packer(settings, parts);
    for (const PreparedCell& cell : cells) RETURN_IF_ERROR(packer.Add(cell));
    ASSIGN_OR_RETURN(bundle, packer.Finish());
    return absl::OkStatus();
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

absl::StatusOr<std::string> WriteBundle(const std::vector<PreparedCell>& cells,
                                        const PackSettings& settings, const fs::path& path) {
  const fs::path target = fs::absolute(path);
  std::error_code error;
  if (fs::is_directory(target, error))
    return absl::InvalidArgumentError(absl::StrCat(path.string(), " is a folder"));
  RETURN_IF_ERROR(CreateDirectories(target.parent_path()));
  ASSIGN_OR_RETURN(const fs::path folder, CreateTempDirectory(target.parent_path(), ".bkm-pack-"));
  absl::StatusOr<std::string> bundle = WriteParts(cells, settings, folder / "bundle");
  if (bundle.ok() && ::rename((folder / "bundle").c_str(), target.c_str()) != 0) {
    bundle = absl::UnavailableError(
        absl::StrCat("cannot write ", path.string(), ": ", std::strerror(errno)));
  }
  RemoveTree(folder).IgnoreError();
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
  const std::string origin = file.path().string();
  PackedCells cells;
  ASSIGN_OR_RETURN(cells.bundle_, file.PartOf(kManifestName));
  std::string& text = cells.texts_[cells.bundle_];
  ASSIGN_OR_RETURN(text, file.Read(cells.bundle_));
  ASSIGN_OR_RETURN(cells.manifest_, ReadManifest(text, absl::StrCat(origin, ": the manifest")));
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
  if (!packed.stopped.is_null()) cell.stopped = packed.stopped;
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
