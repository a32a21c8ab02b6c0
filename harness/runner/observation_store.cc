// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/observation_store.h"

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/link_tree.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

// The files of a cell's folder that judging and explaining read. The request is not shared.
constexpr const char* kKept[] = {"observation.json", "stdout", "stderr", "tensors"};

bool MayStandForOthers(const PreparedCell& cell) {
  const Cell& what = cell.record.cell;
  // On a GPU the last bits depend on more than the key contains.
  if (cell.stopped || !what.plant.empty() || what.repeat != 1 || what.probe.device != "cpu")
    return false;
  for (const auto& [subject, listing] : {std::pair(&cell.engine, &cell.engine_listing),
                                         std::pair(&cell.library, &cell.library_listing)}) {
    if (*subject && !*listing) return false;
  }
  return true;
}

std::string StateOf(const Closure& closure, const PreparedCell& cell) {
  static const TreeListing kNone;
  const auto of = [](const TreeClosure& tree, const std::shared_ptr<const TreeListing>& listing) {
    return StateOf(tree, listing ? *listing : kNone);
  };
  return absl::StrCat(of(closure.engine, cell.engine_listing), " ",
                      of(closure.library, cell.library_listing));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ObservationStore>> ObservationStore::Open(const fs::path& root,
                                                                         TaskSettings settings,
                                                                         std::string cpu) {
  ASSIGN_OR_RETURN(ResultIndex index, ResultIndex::Open(root / "index.sqlite"));
  return std::unique_ptr<ObservationStore>(
      new ObservationStore(root, std::move(settings), std::move(cpu), std::move(index)));
}

std::string ObservationStore::KeyOf(const PreparedCell& cell) const {
  return Sha256(absl::StrCat(QuestionText(cell, settings_), cpu_));
}

absl::StatusOr<std::optional<std::string>> ObservationStore::FolderFor(const PreparedCell& cell) {
  if (!MayStandForOthers(cell)) return std::nullopt;
  const std::string key = KeyOf(cell);
  ASSIGN_OR_RETURN(const std::vector<std::string> dependences, index_.Dependences(key));
  for (const std::string& dependence : dependences) {
    ASSIGN_OR_RETURN(const Closure closure, ClosureFromDependenceText(dependence));
    ASSIGN_OR_RETURN(std::optional<std::string> folder,
                     index_.Find(key, dependence, StateOf(closure, cell)));
    if (folder) return folder;
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<KeptObservation>> ObservationStore::Find(const PreparedCell& cell) {
  ASSIGN_OR_RETURN(const std::optional<std::string> name, FolderFor(cell));
  if (!name) return std::nullopt;
  const std::optional<fs::path> folder = folders_.Get(*name);
  const absl::StatusOr<Json> about =
      folder ? ReadJsonFile(*folder / "about.json") : absl::NotFoundError("collected");
  if (about.ok() && about->is_object() && about->contains("cell"))
    return KeptObservation{about->at("cell").get<std::string>(), *folder / "cell"};
  RETURN_IF_ERROR(index_.Remove(*name));
  return std::nullopt;
}

absl::Status ObservationStore::Keep(const PreparedCell& cell, const Json& observation,
                                    const fs::path& dir) {
  if (!MayStandForOthers(cell)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Closure closure,
                   ClosureFromJson(observation.value("closure", Json()), "observation.json"));
  if (!closure.tells_all()) return absl::OkStatus();
  const std::string key = KeyOf(cell), dependence = DependenceText(closure);
  const std::string state = StateOf(closure, cell);
  const std::string name = Sha256(absl::StrCat(key, dependence, state)).substr(0, 32);
  const auto copy = [&](const fs::path& folder) -> absl::Status {
    RETURN_IF_ERROR(CreateDirectories(folder / "cell"));
    for (const char* kept : kKept) RETURN_IF_ERROR(LinkTree(dir / kept, folder / "cell" / kept));
    return WriteFile(folder / "about.json", ToText(Json{{"cell", cell.record.id}}));
  };
  RETURN_IF_ERROR(folders_.GetOrMake(name, copy).status());
  return index_.Put(key, dependence, state, name);
}

absl::Status ObservationStore::Forget(const PreparedCell& cell) {
  ASSIGN_OR_RETURN(const std::optional<std::string> name, FolderFor(cell));
  return name ? index_.Remove(*name) : absl::OkStatus();
}

}  // namespace bkm
