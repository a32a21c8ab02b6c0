// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SEARCH_PEEL_H_
#define HARNESS_SEARCH_PEEL_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/apicheck/api_check.h"
#include "harness/model/verdict.h"

namespace bkm {

// One line of the engine that was running when a cell stopped.
struct EngineFrame {
  std::string file;  // "verl/workers/engine/torchtitan/transformer_impl.py"
  std::string function;
  int64_t line = 0;
  bool operator==(const EngineFrame&) const = default;
};

// The result of a run of the pair.
struct PeelSight {
  Verdict verdict;
  std::string what;                 // type and normalised message of the exception; may be empty
  std::vector<EngineFrame> frames;  // outermost first, down to the call into the library
  bool in_library = false;          // the library's own code failed
};
// Whether both failed in the same way at the same place.
bool SameFailure(const PeelSight& a, const PeelSight& b);
// Whether `other` got past the place where `failure` stopped; nullopt if that is unknown.
std::optional<bool> GotPast(const PeelSight& other, const PeelSight& failure);

// Whether both are the same ask at the same line, failing for the same reason. The library's side
// may differ.
bool SameBreak(const Violation& a, const Violation& b);

// How a culprit was removed from the library. Written to peel.json: never rename.
enum class Removal {
  kRevert,        // its change is reverted, by three-way merge
  kOlderFiles,    // reverted; files with conflicts are as before the culprit
  kOlderModules,  // the modules that the engine asks for are as before the culprit
  kStub,          // a stub replaces what the engine misses
};
const char* Name(Removal removal);

// One removed culprit.
struct Removed {
  int commit = -1;  // index in the graph; -1: no commit was found, there are only stubs
  Removal by = Removal::kRevert;
  std::vector<Violation> breaks;  // what the stubs or older modules are for
};

// Where in the history something broke.
struct PeelCulprit {
  int commit = -1;              // the first commit with this break; -1: none was found
  std::vector<int> candidates;  // one of these, if no single commit was found
  std::string why;              // one sentence if none was found
};

// The pair, and the operations on it. Implemented by a session with real cells, and by tests.
class PeelWorld {
 public:
  virtual ~PeelWorld() = default;
  virtual int newest() const = 0;
  // Moves the pair to another commit. It starts at the newest.
  virtual void MoveTo(int commit) = 0;
  // The mainline commits from `commit` on, oldest first: those that are it or its descendants.
  virtual std::vector<int> Since(int commit) = 0;
  // Runs the pair without the removed culprits. NotFound, with the reason: they cannot all be
  // removed.
  virtual absl::StatusOr<PeelSight> Run(const std::vector<Removed>& removed) = 0;
  // Whether the library alone runs without them; absent if unknown.
  virtual absl::StatusOr<std::optional<bool>> LibraryRuns(const std::vector<Removed>& removed) = 0;
  // The certain failures of that pair, by the sources.
  virtual absl::StatusOr<std::vector<Violation>> Breaks(const std::vector<Removed>& removed) = 0;
  // The commit that introduced `broken`, by the sources.
  virtual absl::StatusOr<PeelCulprit> FindBySources(const Violation& broken) = 0;
  // The commit that introduced this failure, by runs of commits without the removed culprits.
  virtual absl::StatusOr<PeelCulprit> FindByRuns(const PeelSight& failure,
                                                 const std::vector<Removed>& removed) = 0;
};

// One break, its culprit, and how the culprit was removed.
struct PeelStep {
  PeelCulprit culprit;
  std::vector<Violation> breaks;      // its violations by the sources; may be empty
  std::optional<PeelSight> seen;      // the run that showed it; absent: static only
  std::optional<Removal> removed_by;  // absent: it was not removed
  // If it could not be removed from the pair's commit: the newest commit from which it could, and
  // the commit after that, which builds on it. -1: none.
  int taken_out_at = -1;
  int built_on_by = -1;
  // The culprit that this commit builds on, if no run showed it to break the pair: that culprit can
  // be removed from later commits only together with it. -1: none.
  int builds_on = -1;
  // Whether the library alone runs after the removal; absent: unknown.
  std::optional<bool> library_runs;
  std::string note;  // for people: why it was not removed or not run; may be empty
};

struct PeelResult {
  std::vector<PeelStep> steps;    // in the order in which the pair hits them, then the static ones
  bool works = false;             // the newest pair is ok without the confirmed culprits
  int reached = -1;               // the last commit of the pair
  std::optional<PeelSight> last;  // the last run of the pair there
  std::string why;                // why peeling stopped; empty if the pair works
};

// Peels a pair: runs it, finds the culprit of its failure, removes the culprit, and runs it again.
// If later commits build on a culprit, so that it cannot be removed from the newest commit, peeling
// continues at the last commit from which it can (found by halving). Once the pair is ok there, the
// next commit is removed too: as a culprit if the pair breaks there, else because it is in the way.
// A reverted change stays out of later commits, with older files (kOlderFiles) where they conflict.
absl::StatusOr<PeelResult> Peel(PeelWorld& world, int most_steps);

}  // namespace bkm

#endif  // HARNESS_SEARCH_PEEL_H_
