// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/search/peel.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

// Whether the break explains the failure: the engine stopped on the line of the ask.
bool Explains(const Violation& broken, const PeelSight& sight) {
  if (sight.frames.empty()) return false;
  const EngineFrame& at = sight.frames.back();
  return at.file == broken.engine_file && at.line == broken.engine_line;
}

bool Has(const std::vector<Violation>& breaks, const Violation& broken) {
  return std::any_of(breaks.begin(), breaks.end(),
                     [&](const Violation& each) { return SameBreak(each, broken); });
}

class Peeler {
 public:
  Peeler(PeelWorld& world, int most_steps)
      : world_(world), most_steps_(most_steps), at_(world.newest()) {}

  absl::StatusOr<PeelResult> Run() {
    ASSIGN_OR_RETURN(at_first_, world_.Breaks({}));
    ASSIGN_OR_RETURN(PeelSight sight, world_.Run({}));
    while (!result_.works && result_.why.empty()) {
      ASSIGN_OR_RETURN(sight, Step(std::move(sight)));
    }
    result_.last = std::move(sight);
    result_.reached = at_;
    RETURN_IF_ERROR(AddStaticOnes());
    return std::move(result_);
  }

 private:
  // A run of the pair without one more culprit.
  struct Without {
    PeelSight sight;
    Removal by;
    std::optional<bool> library_runs;
  };

  bool is_newest() const { return at_ == world_.newest(); }

  // Why no further step is possible; empty where one is.
  std::string WhyStop(const PeelSight& sight) const {
    if (!SaysSomething(sight.verdict)) {
      return absl::StrCat("the pair could not be judged: ", ShortText(sight.verdict), ", ",
                          sight.verdict.message);
    }
    if (static_cast<int>(result_.steps.size()) < most_steps_) return "";
    return absl::StrCat("more than ", most_steps_, " culprits");
  }

  // Removes the cause of `sight` and returns the pair's next result.
  absl::StatusOr<PeelSight> Step(PeelSight sight) {
    const bool is_ok = sight.verdict.kind == VerdictKind::kOk;
    if (is_ok && is_newest()) {
      result_.works = true;
      return sight;
    }
    result_.why = WhyStop(sight);
    if (!result_.why.empty()) return sight;
    PeelStep step;
    if (is_ok) {
      RETURN_IF_ERROR(LookAtNext(step));
    } else {
      failure_ = sight;
      step.seen = sight;
      ASSIGN_OR_RETURN(step.breaks, FindCause(sight, step.culprit));
    }
    const int commit = step.culprit.commit;
    const bool again =
        commit >= 0 && std::any_of(removed_.begin(), removed_.end(),
                                   [&](const Removed& r) { return r.commit == commit; });
    std::optional<PeelSight> after;
    if (again) {
      step.note = "removing this commit did not help, or caused this failure";
    } else if (is_ok) {
      ASSIGN_OR_RETURN(after, TakeOutEarlier(step));
    } else {
      ASSIGN_OR_RETURN(after, TakeOut(step));
      if (!after && commit >= 0) {
        ASSIGN_OR_RETURN(after, TakeOutEarlier(step));
      }
    }
    if (!after) {
      result_.why = step.seen ? "the last confirmed culprit cannot be removed"
                              : "commits that build on the culprits cannot be removed with them";
    }
    result_.steps.push_back(std::move(step));
    return after ? *std::move(after) : std::move(sight);
  }

  // The pair is ok at its commit. The next commit either breaks it or is only in the way.
  absl::Status LookAtNext(PeelStep& step) {
    // The last culprit that could not be removed from later commits put the pair here.
    const PeelStep& stuck = *std::find_if(result_.steps.rbegin(), result_.steps.rend(),
                                          [](const PeelStep& s) { return s.built_on_by >= 0; });
    step.culprit.commit = stuck.built_on_by;
    world_.MoveTo(stuck.built_on_by);
    const absl::StatusOr<PeelSight> next = world_.Run(removed_);
    if (!next.ok() && !absl::IsNotFound(next.status())) return next.status();
    bool breaks_it = next.ok() && SaysSomething(next->verdict) &&
                     next->verdict.kind != VerdictKind::kOk && !next->in_library;
    if (breaks_it) {
      ASSIGN_OR_RETURN(const std::optional<bool> library_runs, world_.LibraryRuns(removed_));
      // Else the removals may have caused the failure, as with in_library.
      breaks_it = library_runs.value_or(false);
    }
    if (!breaks_it) {
      step.builds_on = stuck.culprit.commit;
      return absl::OkStatus();
    }
    failure_ = *next;
    step.seen = *next;
    ASSIGN_OR_RETURN(const std::vector<Violation> now, world_.Breaks(removed_));
    return AddBreaksOf(step.culprit.commit, now, step.breaks);
  }

  // Adds those of `breaks` that `commit` introduced, by the sources.
  absl::Status AddBreaksOf(int commit, const std::vector<Violation>& breaks,
                           std::vector<Violation>& its) {
    for (const Violation& broken : breaks) {
      if (Has(its, broken)) continue;
      ASSIGN_OR_RETURN(const PeelCulprit culprit, world_.FindBySources(broken));
      if (culprit.commit == commit) its.push_back(broken);
    }
    return absl::OkStatus();
  }

  // Finds the culprit by the sources if they explain the failure, else by runs. Returns its
  // violations.
  absl::StatusOr<std::vector<Violation>> FindCause(const PeelSight& sight, PeelCulprit& culprit) {
    ASSIGN_OR_RETURN(const std::vector<Violation> now, world_.Breaks(removed_));
    const auto found = std::find_if(now.begin(), now.end(),
                                    [&](const Violation& b) { return Explains(b, sight); });
    if (found == now.end()) {
      ASSIGN_OR_RETURN(culprit, world_.FindByRuns(sight, removed_));
      return std::vector<Violation>();
    }
    ASSIGN_OR_RETURN(culprit, world_.FindBySources(*found));
    std::vector<Violation> breaks = {*found};
    if (culprit.commit >= 0) RETURN_IF_ERROR(AddBreaksOf(culprit.commit, now, breaks));
    return breaks;
  }

  // Removes the step's culprit from the pair's commit.
  absl::StatusOr<std::optional<PeelSight>> TakeOut(PeelStep& step) {
    std::vector<std::string> notes;
    ASSIGN_OR_RETURN(const std::optional<Without> without, TryWays(step, notes));
    step.note = absl::StrJoin(notes, "; ");
    if (!without) return std::nullopt;
    return Accept(step, *without);
  }

  // Removes it from the last commit from which it can be removed, and moves the pair there.
  absl::StatusOr<std::optional<PeelSight>> TakeOutEarlier(PeelStep& step) {
    const std::vector<int> line = world_.Since(step.culprit.commit);
    // The pair's own commit was tried already.
    size_t end = std::find(line.begin(), line.end(), at_) - line.begin();
    if (end == 0) return std::nullopt;
    // First from the culprit itself, which leaves the state before it.
    size_t best = 0;
    std::vector<std::string> notes;
    ASSIGN_OR_RETURN(std::optional<Without> without, TryAt(line[0], step, notes));
    if (!without && step.note.empty()) step.note = absl::StrJoin(notes, "; ");
    while (without && end - best > 1) {
      const size_t middle = best + (end - best) / 2;
      ASSIGN_OR_RETURN(std::optional<Without> later, TryAt(line[middle], step, notes));
      if (later) {
        best = middle;
        without = std::move(later);
      } else {
        end = middle;
      }
    }
    if (without) {
      if (is_newest()) removed_of_newest_ = removed_;
      at_ = line[best];
    }
    world_.MoveTo(at_);
    if (!without) return std::nullopt;
    if (!is_newest()) {
      step.taken_out_at = at_;
      step.built_on_by = line[best + 1];
    }
    return Accept(step, *without);
  }

  PeelSight Accept(PeelStep& step, const Without& without) {
    step.removed_by = without.by;
    step.library_runs = without.library_runs;
    // From other commits it is removed even if their changes conflict; without conflicts, that is a
    // revert.
    const Removal stays = without.by == Removal::kRevert ? Removal::kOlderFiles : without.by;
    removed_.push_back({step.culprit.commit, stays, step.breaks});
    return without.sight;
  }

  absl::StatusOr<std::optional<Without>> TryAt(int commit, const PeelStep& step,
                                               std::vector<std::string>& notes) {
    notes.clear();
    world_.MoveTo(commit);
    return TryWays(step, notes);
  }

  // Tries the ways to remove a culprit, the most faithful first, until one gets the pair further
  // and leaves the library running. `notes` says why the others failed.
  absl::StatusOr<std::optional<Without>> TryWays(const PeelStep& step,
                                                 std::vector<std::string>& notes) {
    std::vector<Removal> ways;
    if (step.culprit.commit >= 0) ways = {Removal::kRevert, Removal::kOlderFiles};
    if (step.culprit.commit >= 0 && !step.breaks.empty()) ways.push_back(Removal::kOlderModules);
    if (!step.breaks.empty()) ways.push_back(Removal::kStub);
    if (ways.empty()) notes.push_back("there is no commit to remove");
    bool reverted = false;
    for (const Removal way : ways) {
      // A revert that applies needs no older files.
      if (way == Removal::kOlderFiles && reverted) continue;
      std::vector<Removed> tried = removed_;
      tried.push_back({step.culprit.commit, way, step.breaks});
      const absl::StatusOr<PeelSight> after = world_.Run(tried);
      if (absl::IsNotFound(after.status())) {
        notes.push_back(absl::StrCat(Name(way), ": ", after.status().message()));
        continue;
      }
      RETURN_IF_ERROR(after.status());
      reverted |= way == Removal::kRevert;
      if (const std::string why = NoGain(*after, *failure_); !why.empty()) {
        notes.push_back(absl::StrCat(Name(way), ": ", why));
        continue;
      }
      ASSIGN_OR_RETURN(const std::optional<bool> runs, world_.LibraryRuns(tried));
      if (!runs.value_or(true)) {
        ASSIGN_OR_RETURN(const std::optional<bool> ran, world_.LibraryRuns({}));
        if (ran.value_or(false)) {
          // The next failure would come from the removal.
          notes.push_back(absl::StrCat(Name(way), ": the library alone no longer runs"));
          continue;
        }
      }
      return Without{*after, way, runs};
    }
    return std::nullopt;
  }

  static std::string NoGain(const PeelSight& after, const PeelSight& before) {
    if (!SaysSomething(after.verdict))
      return absl::StrCat("could not be judged, ", after.verdict.message);
    if (SameFailure(after, before)) return "the pair fails as before";
    if (!GotPast(after, before).value_or(true))
      return absl::StrCat("the pair stops earlier (", after.verdict.message, ")");
    return "";
  }

  // Adds violations by the sources that no run reached.
  absl::Status AddStaticOnes() {
    std::vector<Violation> left = at_first_;
    if (!is_newest()) world_.MoveTo(world_.newest());
    ASSIGN_OR_RETURN(const std::vector<Violation> now,
                     world_.Breaks(is_newest() ? removed_ : removed_of_newest_));
    for (const Violation& broken : now) {
      if (!Has(left, broken)) left.push_back(broken);
    }
    for (const Violation& broken : left) {
      ASSIGN_OR_RETURN(PeelCulprit culprit, world_.FindBySources(broken));
      const auto same =
          std::find_if(result_.steps.begin(), result_.steps.end(), [&](const PeelStep& step) {
            const bool listed =
                std::find(step.breaks.begin(), step.breaks.end(), broken) != step.breaks.end();
            return listed || (culprit.commit >= 0 && step.culprit.commit == culprit.commit);
          });
      if (same == result_.steps.end()) {
        PeelStep step{.culprit = std::move(culprit), .breaks = {broken}};
        if (!Has(now, broken)) step.note = "gone since another culprit was removed";
        result_.steps.push_back(std::move(step));
      } else if (!Has(same->breaks, broken)) {
        same->breaks.push_back(broken);
      }
    }
    return absl::OkStatus();
  }

  PeelWorld& world_;
  const int most_steps_;
  std::vector<Violation> at_first_;
  std::optional<PeelSight> failure_;  // the latest
  std::vector<Removed> removed_;
  int at_;                                  // the pair's commit
  std::vector<Removed> removed_of_newest_;  // removed when the pair left the newest commit
  PeelResult result_;
};

}  // namespace

const char* Name(Removal removal) {
  switch (removal) {
    case Removal::kRevert:
      return "revert";
    case Removal::kOlderFiles:
      return "older-files";
    case Removal::kOlderModules:
      return "older-modules";
    case Removal::kStub:
      return "stand-in";
  }
  return "";
}

bool SameBreak(const Violation& a, const Violation& b) {
  // The text after the semicolon says where the name is now.
  const auto problem = [](const Violation& v) { return v.problem.substr(0, v.problem.find(';')); };
  return a.engine_file == b.engine_file && a.engine_line == b.engine_line && a.asked == b.asked &&
         a.reason == b.reason && problem(a) == problem(b);
}

bool SameFailure(const PeelSight& a, const PeelSight& b) {
  const auto place = [](const PeelSight& sight) {
    return sight.frames.empty() ? EngineFrame() : sight.frames.back();
  };
  return a.verdict.kind == b.verdict.kind && a.verdict.stage == b.verdict.stage &&
         a.verdict.reason == b.verdict.reason && a.what == b.what && place(a) == place(b);
}

std::optional<bool> GotPast(const PeelSight& other, const PeelSight& failure) {
  const auto finished = [](const PeelSight& sight) {
    return sight.verdict.kind == VerdictKind::kOk || sight.verdict.kind == VerdictKind::kWrong;
  };
  if (other.verdict.kind == VerdictKind::kOk) return true;
  if (finished(other) != finished(failure)) return finished(other);
  if (other.verdict.stage != failure.verdict.stage)
    return other.verdict.stage > failure.verdict.stage;
  // Without frames, no code of the engine ran yet.
  if (other.frames.empty() != failure.frames.empty()) return failure.frames.empty();
  // The first frame that differs tells which got further, if both are in one function.
  const size_t shared = std::min(other.frames.size(), failure.frames.size());
  for (size_t i = 0; i < shared; ++i) {
    const EngineFrame &a = other.frames[i], &b = failure.frames[i];
    if (a == b) continue;
    if (a.file != b.file || a.function != b.function) return std::nullopt;
    return a.line > b.line;
  }
  return std::nullopt;
}

absl::StatusOr<PeelResult> Peel(PeelWorld& world, int most_steps) {
  return Peeler(world, most_steps).Run();
}

}  // namespace bkm
