// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/ray/served_cell.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/bundle/manifest.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// The parts that say which cell a manifest has, without the content of its sources.
std::vector<std::string> PartsToRead(const BundleManifest& manifest) {
  std::vector<std::string> parts;
  for (const auto& [key, part] : manifest.locks) parts.push_back(part);
  for (const auto& [folder, part] : manifest.probes) parts.push_back(part);
  for (const PackedCell& cell : manifest.cells) {
    for (const std::optional<PackedSubject>* subject : {&cell.engine, &cell.library}) {
      if (*subject && !(*subject)->tree.empty()) parts.push_back((*subject)->tree);
    }
  }
  return parts;
}

}  // namespace

absl::StatusOr<ServedCell> ReadServedCell(const Json& message) {
  ServedCell cell{.lease = WholeOf(message, "lease").value_or(0),
                  .key = TextOf(message, "key"),
                  .timeout_s = static_cast<int>(WholeOf(message, "timeout_s").value_or(0)),
                  .manifest = TextOf(message, "manifest")};
  if (cell.lease > 0 && cell.timeout_s > 0 && !cell.manifest.empty()) return cell;
  return absl::InvalidArgumentError("a message 'run' is malformed");
}

absl::StatusOr<std::unique_ptr<CellPreparer>> CellPreparer::Create(const Installation& installation,
                                                                   TaskSettings settings,
                                                                   RunObserver& observer) {
  ASSIGN_OR_RETURN(PartFile parts, PartFile::Open(CacheDirectory() / "parts/parts.bkm"));
  return std::unique_ptr<CellPreparer>(
      new CellPreparer(std::move(parts), installation, std::move(settings), observer));
}

absl::Status CellPreparer::AddParts(const std::vector<std::string>& contents) {
  return parts_.Transact([&]() -> absl::Status {
    for (const std::string& content : contents) RETURN_IF_ERROR(parts_.Add(content).status());
    return absl::OkStatus();
  });
}

absl::StatusOr<bool> CellPreparer::HaveAll(const std::vector<std::string>& parts,
                                           ServedCell& cell) const {
  for (const std::string& part : parts) {
    ASSIGN_OR_RETURN(const bool is_here, parts_.Has(part));
    if (!is_here) cell.missing.insert(part);
  }
  return cell.missing.empty();
}

// The interpreter that an "existing" lock names is started: unlike the maker of a bundle, the user
// of a cluster may start programs on its nodes.
absl::Status CellPreparer::ChooseRuntimes(const PackedCell& packed, const PackedCells& cells) {
  if (placement_) return absl::OkStatus();
  const std::shared_ptr<const RuntimeLock> lock = cells.LockOf(packed);
  if (!lock) return absl::InvalidArgumentError("the cell has no runtime");
  const fs::path python = lock->policy == "existing" ? lock->interpreter : fs::path();
  ASSIGN_OR_RETURN(
      runtimes_, WorkRuntimes::Create(python, installation_.cell_worker(),
                                      std::string(Name(settings_.sandbox)),
                                      [this](const std::string& what) { observer_.OnNote(what); }));
  placement_ = std::make_unique<Placement>(parts_, *runtimes_, observer_);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<CellTask>> CellPreparer::Prepare(ServedCell& cell,
                                                              const fs::path& folder) {
  ASSIGN_OR_RETURN(const BundleManifest manifest, ReadManifest(cell.manifest, "the cell"));
  if (manifest.cells.size() != 1) return absl::InvalidArgumentError("a message has not one cell");
  ASSIGN_OR_RETURN(const bool readable, HaveAll(PartsToRead(manifest), cell));
  if (!readable) return std::optional<CellTask>();
  ASSIGN_OR_RETURN(const PackedCells cells, PackedCells::Read(parts_, cell.manifest));
  const PackedCell& packed = cells.manifest().cells[0];
  RETURN_IF_ERROR(ChooseRuntimes(packed, cells));
  ASSIGN_OR_RETURN(PreparedCell prepared, placement_->Choose(packed, cells));
  if (prepared.record.lock != packed.record.lock) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the environment of its runtime ", prepared.lock->runtime, " is another one here: lock ",
        prepared.record.lock.substr(0, 12), ", not ", packed.record.lock.substr(0, 12)));
  }
  ASSIGN_OR_RETURN(const bool placeable,
                   HaveAll(placement_->PartsToPlace(packed, cells, prepared), cell));
  if (!placeable) return std::optional<CellTask>();
  RETURN_IF_ERROR(placement_->Place(packed, cells, prepared));
  TaskSettings settings = settings_;
  settings.limits = manifest.limits;
  Json request = MakeRequest(prepared, folder, settings);
  if (TextOf(request, "key") != cell.key) {
    return absl::FailedPreconditionError(
        "this bkm makes another cell of it: use the same version and the same environment");
  }
  request["limits"]["timeout_s"] = cell.timeout_s;
  request["cell"] = absl::StrCat(cell.lease);  // the worker's name for it
  RETURN_IF_ERROR(CreateDirectories(folder / "tensors"));
  RETURN_IF_ERROR(CreateDirectories(folder / "work"));
  return std::optional<CellTask>(
      CellTask{.id = absl::StrCat(cell.lease), .worker = prepared.worker, .request = request});
}

}  // namespace bkm
