// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/selftest/mutation_session.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/folder_reader.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/selftest/mutant.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLargestSource = 4 << 20;

// Makes the files of each mutant when it is its turn, and removes them when it is judged.
class MutantFeed : public CellFeed {
 public:
  MutantFeed(const PreparedCell& cell, const std::vector<Mutation>& mutations, fs::path folder,
             absl::Duration until, RunObserver& observer)
      : cell_(cell),
        mutations_(mutations),
        folder_(std::move(folder)),
        until_(until),
        observer_(observer) {}
  ~MutantFeed() override { RemoveTree(folder_).IgnoreError(); }

  absl::StatusOr<std::vector<PreparedCell>> Next(int room) override {
    if (next_ == 0) observer_.OnPlanned(static_cast<int>(mutations_.size()));
    std::vector<PreparedCell> cells;
    for (; room > 0 && next_ < mutations_.size() && clock_.Elapsed() < until_; --room, ++next_) {
      const fs::path folder = folder_ / absl::StrCat(next_);
      ASSIGN_OR_RETURN(cells.emplace_back(), MakeMutant(cell_, mutations_[next_], folder));
      folders_[cells.back().record.id] = folder;
    }
    return cells;
  }
  absl::Status Judged(const CellRecord& cell) override { return RemoveTree(folders_[cell.id]); }

 private:
  const PreparedCell& cell_;
  const std::vector<Mutation>& mutations_;
  const fs::path folder_;
  const absl::Duration until_;
  RunObserver& observer_;
  const RealClock clock_;
  size_t next_ = 0;
  std::map<std::string, fs::path> folders_;  // by cell id
};

// What a cell observed, and a hash of its numbers.
struct Observed {
  CellFacts facts;
  std::string digest;
};

absl::StatusOr<Observed> ReadObserved(const RunDirectory& directory, const CellRecord& record) {
  ASSIGN_OR_RETURN(std::optional<CellFacts> facts, directory.ReadObservation(record));
  if (!facts) return absl::NotFoundError(absl::StrCat(record.id, " was not measured"));
  Observed observed{.facts = *std::move(facts)};
  ASSIGN_OR_RETURN(observed.digest, NumbersDigest(observed.facts.seen(), directory.cell(record)));
  return observed;
}

// The unmutated cell.
struct UnchangedPair {
  Json lines;  // {"built": {party: {file: [line]}}, "trained": ...}
  std::string digest;
  double seconds = 0;
};

// Nullopt after an interrupt.
absl::StatusOr<std::optional<UnchangedPair>> MeasureBaseline(const MeasurementSetup& setup,
                                                             const PreparedCell& cell) {
  const RunDirectory directory(setup.directory.root() / "unmutated");
  MeasurementSetup own{setup.installation, setup.matrix,   directory,
                       setup.options,      setup.observer, setup.signals};
  ASSIGN_OR_RETURN(const RunRecord run, Measure(own, {cell, RecordingCell(cell)}));
  if (!run.finished) return std::optional<UnchangedPair>();
  for (const CellRecord& record : run.cells) {
    if (record.verdict && record.verdict->kind == VerdictKind::kOk) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("only a right cell can be mutated, and ", record.id, " is ",
                     record.verdict ? ShortText(*record.verdict) : "not judged", ": ",
                     record.verdict ? record.verdict->message : ""));
  }
  ASSIGN_OR_RETURN(const Observed plain, ReadObserved(directory, run.cells[0]));
  ASSIGN_OR_RETURN(const Observed recorded, ReadObserved(directory, run.cells[1]));
  if (plain.digest != recorded.digest) {
    return absl::FailedPreconditionError(
        absl::StrCat("two runs of ", run.cells[0].id,
                     " differ in their last bits, so nobody can tell what a mutation changed"));
  }
  return UnchangedPair{recorded.facts.lines(), plain.digest, run.cells[0].cost.seconds};
}

// The lines of one subject.
Json LinesOf(const Json& lines, Party party) {
  Json own = Json::object();
  for (const char* phase : {"built", "trained"})
    own[phase] = ObjectOf(ObjectOf(lines, phase), Name(party));
  return own;
}

// Adds what is possible to `pair`, and returns what was chosen of it.
absl::StatusOr<std::vector<Mutation>> ChooseMutations(const PreparedCell& cell, const Json& lines,
                                                      const MutationOptions& options,
                                                      MutatedPair& pair) {
  std::vector<Mutation> possible;
  for (const Party party : {Party::kEngine, Party::kLibrary}) {
    ASSIGN_OR_RETURN(const std::optional<fs::path> folder, PackageFolder(cell, party));
    if (!folder) continue;
    ASSIGN_OR_RETURN(PossibleMutations found,
                     FindMutations(CellPython(), party, *folder, LinesOf(lines, party)));
    pair.unreached += found.unreached;
    possible.insert(possible.end(), found.mutations.begin(), found.mutations.end());
  }
  pair.possible = static_cast<int64_t>(possible.size());
  if (possible.empty())
    return absl::FailedPreconditionError("no line of the subjects can be mutated");
  return PickMutations(std::move(possible), options.settings, options.mutants);
}

absl::StatusOr<Mutant> Assess(const PreparedCell& cell, const Mutation& mutation,
                              const CellRecord& record, const RunDirectory& directory,
                              const std::string& plain) {
  Mutant mutant{.mutation = mutation, .cell = record.dir};
  ASSIGN_OR_RETURN(const std::optional<fs::path> folder, PackageFolder(cell, mutation.party));
  ASSIGN_OR_RETURN(const std::string text,
                   FolderReader(*folder).Read(mutation.file, kLargestSource));
  mutant.diff = DiffOf(mutation, text);
  if (record.verdict) {
    mutant.verdict = ShortText(*record.verdict);
    mutant.message = record.verdict->message;
  }
  ASSIGN_OR_RETURN(const std::optional<CellFacts> facts, directory.ReadObservation(record));
  if (!facts) return mutant;
  ASSIGN_OR_RETURN(mutant.outcome,
                   OutcomeOf(record, &facts->seen(), directory.cell(record), plain));
  return mutant;
}

// A mutant may loop for ever; a right cell takes no several times its time.
Matrix WithShortLimit(Matrix matrix, double seconds) {
  const int enough = 60 + static_cast<int>(std::ceil(5 * seconds));
  matrix.limits.timeout_s = std::min(matrix.limits.timeout_s, enough);
  return matrix;
}

}  // namespace

absl::StatusOr<MutatedPair> MutatePair(const MeasurementSetup& setup, const PreparedCell& cell,
                                       const MutationOptions& options) {
  MutatedPair pair{.cell = cell.record.id, .seed = options.settings.seed};
  ASSIGN_OR_RETURN(const std::optional<UnchangedPair> baseline, MeasureBaseline(setup, cell));
  if (!baseline) return pair;
  ASSIGN_OR_RETURN(const std::vector<Mutation> mutations,
                   ChooseMutations(cell, baseline->lines, options, pair));
  ASSIGN_OR_RETURN(fs::path folder, CreateTempDirectory(CacheDirectory() / "tmp", "mutants-"));
  MutantFeed feed(cell, mutations, std::move(folder), options.until, setup.observer);
  const RunDirectory directory(setup.directory.root() / "mutants");
  const Matrix matrix = WithShortLimit(setup.matrix, baseline->seconds);
  const MeasurementSetup own{setup.installation, matrix,         directory,
                             setup.options,      setup.observer, setup.signals};
  ASSIGN_OR_RETURN(
      const std::unique_ptr<CellExecutor> workers,
      MakeWorkers({setup.installation, setup.options, directory, setup.observer, setup.signals}));
  ASSIGN_OR_RETURN(const RunRecord run, Measure(own, *workers, feed));
  std::map<std::string, const Mutation*> by_plant;
  for (const Mutation& mutation : mutations) by_plant[PlantOf(mutation)] = &mutation;
  for (const CellRecord& record : run.cells) {
    ASSIGN_OR_RETURN(
        pair.mutants.emplace_back(),
        Assess(cell, *by_plant.at(record.cell.plant.at(0)), record, directory, baseline->digest));
  }
  return pair;
}

}  // namespace bkm
