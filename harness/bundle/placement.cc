// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/bundle/placement.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/embedded_python.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"
#include "harness/bundle/packed_trees.h"
#include "harness/runner/devices.h"
#include "harness/runner/installation.h"
#include "harness/runner/preparation.h"
#include "harness/store/checksums.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// What is compiled of a tree. A user's folder is not compiled where it was packed, either.
std::string CompiledPackage(const PackedSubject& packed) {
  return packed.listed ? packed.package : "";
}

// The first line that differs: " (SUM SIZE FILE)".
std::string Different(const std::string& here, const std::string& there) {
  const std::vector<std::string> lines = absl::StrSplit(here, '\n');
  const std::vector<std::string> others = absl::StrSplit(there, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i >= others.size() || lines[i] != others[i])
      return absl::StrCat(" (", lines[i].substr(std::min<size_t>(64, lines[i].size())), " )");
  }
  return "";
}

}  // namespace

absl::StatusOr<PreparedCell> Placement::Choose(const PackedCell& packed, const PackedCells& cells) {
  if (!packed.stopped.is_null()) return cells.CellIn(packed, nullptr);
  ASSIGN_OR_RETURN(const std::shared_ptr<const RuntimeLock> lock, runtimes_.LockFor(packed, cells));
  RETURN_IF_ERROR(CheckDevices(packed.record.cell.probe, *lock));
  return cells.CellIn(packed, lock);
}

const absl::StatusOr<std::vector<CudaDevice>>& Placement::Devices() {
  if (!devices_) devices_ = FindDevices();
  return *devices_;
}

absl::Status Placement::CheckDevices(const Probe& probe, const RuntimeLock& lock) {
  if (probe.device == "cpu") return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<CudaDevice> devices, Devices());
  std::string why = WhyDevicesCannot(probe, devices);
  if (why.empty()) why = WhyTorchCannot(probe, lock.VersionOf("torch"));
  return why.empty() ? absl::OkStatus() : absl::FailedPreconditionError(why);
}

std::vector<std::string> Placement::PartsToPlace(const PackedCell& packed, const PackedCells& cells,
                                                 const PreparedCell& cell) {
  std::vector<std::string> parts;
  if (cell.stopped) return parts;
  for (const std::optional<PackedSubject>* subject : {&packed.engine, &packed.library}) {
    if (!*subject || (*subject)->tree.empty() || OwnTree(**subject, cells)) continue;
    const std::string key =
        PlacedTreeKey((*subject)->tree, CompiledPackage(**subject), cell.lock->python);
    if (trees_.Get(key)) continue;
    for (const PackedFile& file : cells.tree((*subject)->tree).files) {
      if (!file.part.empty()) parts.push_back(file.part);
    }
  }
  return parts;
}

absl::Status Placement::Place(const PackedCell& packed, const PackedCells& cells,
                              PreparedCell& cell) {
  if (cell.stopped) return absl::OkStatus();
  ASSIGN_OR_RETURN(WorkerSetup worker, runtimes_.WorkerFor(*cell.lock));
  cell.worker = std::move(worker);
  if (cell.record.cell.probe.device != "cpu") {
    ASSIGN_OR_RETURN(const std::vector<CudaDevice> devices, Devices());
    UseDevices(devices, cells.manifest().limits.memory_mib, cell);
  }
  // An environment's own Python starts in a sandbox only; the user's was named for this.
  const fs::path python = runtimes_.python_version().empty() ? CellPython() : cell.worker.python;
  RETURN_IF_ERROR(PlaceSubject(packed.engine, cells, python, *cell.lock, cell.engine));
  RETURN_IF_ERROR(PlaceSubject(packed.library, cells, python, *cell.lock, cell.library));
  return PlaceProbe(packed, cells, cell);
}

absl::Status Placement::PlaceSubject(const std::optional<PackedSubject>& packed,
                                     const PackedCells& cells, const fs::path& python,
                                     const RuntimeLock& lock, std::optional<Subject>& subject) {
  if (!packed || packed->tree.empty()) return absl::OkStatus();
  if (std::optional<fs::path> own = OwnTree(*packed, cells)) {
    subject->tree = *std::move(own);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(subject->tree, PlaceTree(trees_, packed->tree, cells.tree(packed->tree), parts_,
                                            CompiledPackage(*packed), python, lock.python));
  return absl::OkStatus();
}

std::optional<fs::path> Placement::OwnTree(const PackedSubject& packed, const PackedCells& cells) {
  if (packed.home.empty()) return std::nullopt;
  const auto [known, is_new] = own_.try_emplace(absl::StrCat(packed.home, "\n", packed.tree));
  if (!is_new) return known->second;
  if (!trees_.Get(packed.home.substr(0, packed.home.find('/')))) return std::nullopt;
  const fs::path tree = trees_.root() / packed.home;
  const absl::StatusOr<TreeListing> listing = TreeListing::OfFolder(tree);
  if (listing.ok() && listing->digest() == ListingOf(cells.tree(packed.tree)).digest())
    known->second = tree;
  return known->second;
}

absl::Status Placement::PlaceProbe(const PackedCell& packed, const PackedCells& cells,
                                   PreparedCell& cell) {
  if (packed.probe.empty()) return absl::OkStatus();
  const auto known = probes_.find(packed.probe);
  if (known != probes_.end()) {
    cell.probe_folder = known->second;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const fs::path folder,
                   SoundProbeFolder(cell.record.cell.probe, CacheDirectory(),
                                    [&](const std::string& what) { observer_.OnWarning(what); }));
  ASSIGN_OR_RETURN(const std::string sums, ReadFile(folder / kManifestFile));
  if (folder.filename() != packed.probe || sums != cells.probe(packed.probe)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this bkm draws its probe ", packed.probe, " otherwise than the bkm that packed it",
        Different(sums, cells.probe(packed.probe)), ": use the same version"));
  }
  cell.probe_folder = probes_[packed.probe] = folder;
  return absl::OkStatus();
}

}  // namespace bkm
