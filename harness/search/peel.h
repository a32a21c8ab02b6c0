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

// What a run of the pair came to.
struct PeelSight {
  Verdict verdict;
  std::string what;                 // type and normalised message of the exception; may be empty
  std::vector<EngineFrame> frames;  // outermost first, down to where the library is entered
  bool in_library = false;          // the library's own code failed
};
// The same thing went wrong at the same place.
bool SameFailure(const PeelSight& a, const PeelSight& b);
// Whether `other` got past the place where `failure` stopped: yes, no, or cannot be said.
std::optional<bool> GotPast(const PeelSight& other, const PeelSight& failure);

// The same thing is asked at the same line, and is not there for the same reason; where it is
// looked for may differ.
bool SameBreak(const Violation& a, const Violation& b);

// How a culprit was taken out of the library. Written to peel.json: never rename.
enum class Removal {
  kRevert,        // its change reverted, by three-way merge
  kOlderFiles,    // reverted, but where later changes met it the files are as before the culprit
  kOlderModules,  // the modules that the engine asks are as before the culprit
  kStub,          // something was put where the engine looks for what is missing
};
const char* Name(Removal removal);

// One culprit that was taken out.
struct Removed {
  int commit = -1;  // of the search's graph; -1: found nowhere, only stood in for
  Removal by = Removal::kRevert;
  std::vector<Violation> breaks;  // what is stood in for, or whose modules are older
};

// Where in the history something broke.
struct PeelCulprit {
  int commit = -1;              // the first commit that is broken so; -1: none was found
  std::vector<int> candidates;  // one of these, where no single commit could be named
  std::string why;              // where none is named: one sentence
};

// The pair, and what can be done with it. Implemented on the real thing, and by tests.
class PeelWorld {
 public:
  virtual ~PeelWorld() = default;
  virtual int newest() const = 0;
  // From now on the pair is the one at this commit; at first it is the newest.
  virtual void MoveTo(int commit) = 0;
  // The commits of the mainline that have `commit` behind them (it is the first where it lies on
  // the mainline itself), oldest first, up to the newest.
  virtual std::vector<int> Since(int commit) = 0;
  // The pair without the culprits that were taken out. NotFound: they cannot all be taken out (the
  // message says why).
  virtual absl::StatusOr<PeelSight> Run(const std::vector<Removed>& removed) = 0;
  // Whether the library alone does, so; absent where that cannot be said.
  virtual absl::StatusOr<std::optional<bool>> LibraryRuns(const std::vector<Removed>& removed) = 0;
  // What the sources say of the same pair: what certainly fails.
  virtual absl::StatusOr<std::vector<Violation>> Breaks(const std::vector<Removed>& removed) = 0;
  // The commit since which `broken` is so, by the sources.
  virtual absl::StatusOr<PeelCulprit> FindBySources(const Violation& broken) = 0;
  // The commit since which the pair fails so, by runs of commits without what was taken out.
  virtual absl::StatusOr<PeelCulprit> FindByRuns(const PeelSight& failure,
                                                 const std::vector<Removed>& removed) = 0;
};

// One thing that is broken, and what could be made of it.
struct PeelStep {
  PeelCulprit culprit;
  std::vector<Violation> breaks;      // what the sources say of it; empty where only a run shows it
  std::optional<PeelSight> seen;      // how a run showed it; absent: static only
  std::optional<Removal> removed_by;  // where it was first taken out
  // Where it could not be taken out of the newest commit (or of where the pair stood by then): the
  // newest of which it could, and the one after that, which builds on it. -1: no such.
  int taken_out_at = -1;
  int built_on_by = -1;
  // Not seen to break the pair, but in the way: it builds on this culprit, which can be taken out
  // of it and what follows only together with it. -1: no such.
  int builds_on = -1;
  // The library alone, once this was taken out; absent: not known.
  std::optional<bool> library_runs;
  std::string note;  // why it could not be taken out, or was not run, for people; mostly empty
};

struct PeelResult {
  std::vector<PeelStep> steps;    // in the order in which the pair meets them, then the static ones
  bool works = false;             // the newest pair is ok with all confirmed culprits taken out
  int reached = -1;               // the commit at which the pair stands in the end
  std::optional<PeelSight> last;  // what it comes to there
  std::string why;                // why it does not go on; empty where it works
};

// Peels a pair: runs it, finds the culprit of what stops it, takes that out, and runs it again.
// Where later commits build on a culprit, so that it cannot be taken out of the newest one, it goes
// on at the last commit of which it can (found by halving); and where the pair is ok there, with
// the commit after that as the next to take out: a culprit too if the pair breaks there, else only
// in the way. What was reverted once stays out of the commits
// that follow, with older files (kOlderFiles) where these meet it.
absl::StatusOr<PeelResult> Peel(PeelWorld& world, int most_steps);

}  // namespace bkm

#endif  // HARNESS_SEARCH_PEEL_H_
