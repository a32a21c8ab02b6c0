// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/observation_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/json_facts.h"
#include "harness/base/link_tree.h"
#include "harness/base/status_macros.h"
#include "harness/runner/stored_observations.h"
#include "harness/store/checksums.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

// The files of a cell's folder that judging and explaining read. The request is not shared.
constexpr const char* kKept[] = {"observation.json", kObservedFile, "stdout", "stderr", "tensors"};

// How keys and states are made. Entries of other rules are not found.
constexpr absl::string_view kRule = "observed from outside, 1";
// The dependence of a cell that may have read anything in its trees.
constexpr absl::string_view kWholeTrees = "the whole trees";

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

// The state of a dependence in the trees of `cell`. DataLoss: another version wrote the dependence.
absl::StatusOr<std::string> StateOf(const std::string& dependence, const PreparedCell& cell) {
  static const TreeListing kNone;
  const TreeListing& engine = cell.engine_listing ? *cell.engine_listing : kNone;
  const TreeListing& library = cell.library_listing ? *cell.library_listing : kNone;
  if (dependence == kWholeTrees) return absl::StrCat(engine.digest(), " ", library.digest());
  ASSIGN_OR_RETURN(const Closure closure, ClosureFromDependenceText(dependence));
  return absl::StrCat(StateOf(closure.engine, engine), " ", StateOf(closure.library, library));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ObservationStore>> ObservationStore::Open(
    const fs::path& root, TaskSettings settings, std::string cpu,
    std::function<void(const std::string&)> report) {
  ASSIGN_OR_RETURN(ResultIndex index, ResultIndex::Open(root / "index.sqlite"));
  auto store = std::unique_ptr<ObservationStore>(
      new ObservationStore(root, std::move(settings), std::move(cpu), std::move(index)));
  store->report_ = std::move(report);
  return store;
}

std::string ObservationStore::KeyOf(const PreparedCell& cell) const {
  return Sha256(absl::StrCat(QuestionText(cell, settings_), cpu_, kRule));
}

absl::StatusOr<std::optional<std::string>> ObservationStore::FolderFor(const PreparedCell& cell) {
  if (!MayStandForOthers(cell)) return std::nullopt;
  const std::string key = KeyOf(cell);
  ASSIGN_OR_RETURN(const std::vector<std::string> dependences, index_.Dependences(key));
  for (const std::string& dependence : dependences) {
    const absl::StatusOr<std::string> state = StateOf(dependence, cell);
    if (!state.ok()) continue;
    ASSIGN_OR_RETURN(std::optional<std::string> folder, index_.Find(key, dependence, *state));
    if (folder) return folder;
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<KeptObservation>> ObservationStore::Find(const PreparedCell& cell) {
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<std::string> name, FolderFor(cell));
    if (!name) return std::nullopt;
    const std::optional<fs::path> folder = folders_.Get(*name);
    const absl::Status sound = folder ? VerifyManifest(*folder) : absl::NotFoundError("collected");
    const absl::StatusOr<Json> about =
        sound.ok() ? ReadJsonFile(*folder / "about.json") : absl::StatusOr<Json>(sound);
    const std::string measured = about.ok() ? TextOf(*about, "cell") : "";
    if (!measured.empty()) return KeptObservation{measured, *folder / "cell"};
    // Another one may stand for the cell.
    RETURN_IF_ERROR(index_.Remove(*name));
    if (!folder) continue;
    RETURN_IF_ERROR(folders_.SetAside(*name));
    if (report_) report_(absl::StrCat(sound.message(), ": setting this stored result aside"));
  }
}

absl::Status ObservationStore::Keep(const PreparedCell& cell, const CellFacts& facts,
                                    const Json& observed, const fs::path& dir) {
  if (!MayStandForOthers(cell) || !facts.ending().is_its_own()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<Closure> closure,
                   ClosureFromObserved(observed, (dir / kObservedFile).string()));
  const std::string key = KeyOf(cell);
  const std::string dependence = closure ? DependenceText(*closure) : std::string(kWholeTrees);
  ASSIGN_OR_RETURN(const std::string state, StateOf(dependence, cell));
  const std::string name = Sha256(absl::StrCat(key, dependence, state)).substr(0, 32);
  const auto copy = [&](const fs::path& folder) -> absl::Status {
    RETURN_IF_ERROR(CreateDirectories(folder / "cell"));
    for (const char* kept : kKept) RETURN_IF_ERROR(LinkTree(dir / kept, folder / "cell" / kept));
    RETURN_IF_ERROR(WriteFile(folder / "about.json", ToText(Json{{"cell", cell.record.id}})));
    return WriteManifest(folder);
  };
  RETURN_IF_ERROR(folders_.GetOrMake(name, copy).status());
  return index_.Put(key, dependence, state, name);
}

absl::Status ObservationStore::Forget(const PreparedCell& cell) {
  ASSIGN_OR_RETURN(const std::optional<std::string> name, FolderFor(cell));
  return name ? index_.Remove(*name) : absl::OkStatus();
}

absl::Status ObservationStore::Discard(const KeptObservation& kept) {
  const std::string name = kept.folder.parent_path().filename();
  RETURN_IF_ERROR(index_.Remove(name));
  return folders_.SetAside(name);
}

}  // namespace bkm
