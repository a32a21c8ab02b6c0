// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/search/investigation.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace bkm {

const char* Name(MadeBy made_by) {
  switch (made_by) {
    case MadeBy::kCommit:
      return "commit";
    case MadeBy::kRuntime:
      return "runtime";
    case MadeBy::kBoth:
      return "both";
    case MadeBy::kEither:
      return "either";
    case MadeBy::kUndecided:
      return "undecided";
  }
  return "";
}

Investigation::Investigation(const CommitGraph& graph, InvestigationSetup setup)
    : graph_(graph), setup_(std::move(setup)) {
  BisectIn(setup_.late);
  Advance();
}

void Investigation::BisectIn(int runtime_of) {
  bisection_ = std::make_unique<Bisection>(graph_, BisectionSetup{.late = setup_.late,
                                                                  .early = setup_.early,
                                                                  .steps = setup_.steps,
                                                                  .suspects = setup_.suspects,
                                                                  .runtime_of = runtime_of,
                                                                  .criterion = setup_.criterion});
  for (const auto& [trial, outcome] : told_) bisection_->Tell(trial, outcome);
}

void Investigation::Tell(const Trial& trial, const Outcome& outcome) {
  told_[trial] = outcome;
  in_flight_.erase(trial);
  bisection_->Tell(trial, outcome);
  if (flaky_) flaky_->Tell(trial, outcome);
  Advance();
}

const Outcome* Investigation::Told(const Trial& trial) const {
  const auto it = told_.find(trial);
  return it == told_.end() ? nullptr : &it->second;
}

const Outcome* Investigation::OutcomeOf(int commit) const {
  const int owner = bisection_->setup().runtime_of;
  for (const auto& [trial, outcome] : told_) {
    if (trial.commit == commit && trial.runtime_of == owner && !trial.forced) return &outcome;
  }
  // Else the outcome of equal content.
  for (const auto& [trial, outcome] : told_) {
    if (graph_.content(trial.commit) == graph_.content(commit) && trial.runtime_of == owner &&
        !trial.forced)
      return &outcome;
  }
  return nullptr;
}

int Investigation::candidates() const {
  return static_cast<int>(bisection_->result().candidates.size());
}

std::optional<Side> Investigation::Ask(const Trial& trial) {
  if (const Outcome* outcome = Told(trial)) return Classify(outcome->verdict);
  asks_.push_back(trial);
  return std::nullopt;
}

void Investigation::Advance() {
  asks_.clear();
  if (done_) return;
  const bool ends_known = setup_.early || bisection_->result().early;
  if (flaky_ || (setup_.flaky && setup_.early)) return StartFlaky();
  if (!bisection_->done()) return;
  result_.bisection = bisection_->result();
  const BisectionResult& found = result_.bisection;
  if ((setup_.flaky && ends_known) || found.status == SearchStatus::kUnstable) return StartFlaky();
  if (found.status == SearchStatus::kFound) {
    result_.confidence = ConfidenceOf(found);
    return Cross();
  }
  const bool alike = found.status == SearchStatus::kNone && setup_.early &&
                     found.before == found.after && found.after != Side::kNeither;
  if (alike && !runtimes_asked_) return AskRuntimes();
  done_ = true;
}

double Investigation::ConfidenceOf(const BisectionResult& found) const {
  // A suspect may have made the early end's outcome unnecessary.
  const int early = found.early.value_or(found.parents.empty() ? found.late : found.parents[0]);
  const std::vector<int> candidates = CandidatesBetween(graph_, early, found.late);
  std::map<int, SideCounts> counts;
  for (const auto& [trial, outcome] : told_) {
    if (trial.runtime_of != bisection_->setup().runtime_of || trial.forced) continue;
    const Side side = Classify(outcome.verdict);
    SideCounts& seen = counts[trial.commit];
    ++(side == found.after ? seen.after : side == found.before ? seen.before : seen.nothing);
  }
  const Posterior posterior = PosteriorOf(graph_, candidates, counts,
                                          {.flake = kAssumedFlakeRate,
                                           .miss = kAssumedFlakeRate,
                                           .after = found.after,
                                           .flaky_commits = kFlakyCommits});
  const auto it = std::find(candidates.begin(), candidates.end(), found.culprit);
  return it == candidates.end() ? 0 : posterior.weights[it - candidates.begin()];
}

// Both ends are on one side in the late end's runtime. Checks whether the early end is on that side
// in its own runtime, too.
void Investigation::AskRuntimes() {
  doing_ = "comparing the runtimes";
  const int early = *setup_.early, late = setup_.late;
  const Side after = result_.bisection.after;
  const Trial own{.commit = early, .run = 1, .runtime_of = early};
  const std::optional<Side> early_side = Ask(own);
  if (!early_side) return;
  const Outcome* held = OutcomeOf(early);
  if (*early_side != Opposite(after) || (held && held->lock == Told(own)->lock)) {
    done_ = true;
    return;
  }
  const Trial crossed{.commit = late, .run = 1, .runtime_of = early, .forced = true};
  const std::optional<Side> late_side = Ask(crossed);
  if (!late_side) return;
  runtimes_asked_ = true;
  if (*late_side == after) {
    // In the early end's runtime the ends differ, so a commit makes the difference.
    doing_ = "bisecting in the runtime of the older end";
    BisectIn(early);
    return Advance();
  }
  done_ = true;
  if (*late_side == Side::kNeither) return;
  result_.made_by = MadeBy::kRuntime;
  result_.runtime_before = Told(own)->lock;
  result_.runtime_after = OutcomeOf(late)->lock;
  result_.bisection.status = SearchStatus::kFound;
  result_.bisection.before = Opposite(after);
  result_.bisection.why =
      "the runtime is the cause, not a commit: each end is good or bad depending on its runtime";
}

void Investigation::StartFlaky() {
  doing_ = "flaky search";
  const BisectionResult& ends = bisection_->result();
  if (!flaky_) {
    flaky_ = std::make_unique<FlakySearch>(
        graph_, FlakySetup{.late = setup_.late,
                           .early = setup_.early ? *setup_.early : *ends.early,
                           .runtime_of = bisection_->setup().runtime_of,
                           .criterion = setup_.criterion,
                           .good_signature = bisection_->good_signature(),
                           .after = ends.after == Side::kNeither ? setup_.after : ends.after,
                           .flake_rate = setup_.flake_rate,
                           .confidence = setup_.confidence});
    for (const auto& [trial, outcome] : told_) flaky_->Tell(trial, outcome);
  }
  if (!flaky_->done()) return;
  const FlakyResult& found = flaky_->result();
  result_.flaky = found;
  result_.bisection = ends;
  result_.bisection.status = found.status;
  result_.bisection.why = found.why;
  result_.bisection.culprit = found.culprit;
  result_.bisection.candidates.clear();
  if (found.culprit >= 0) {
    result_.confidence = found.confidence;
    result_.bisection.parents = graph_.parents(found.culprit);
    result_.bisection.candidates = {found.culprit};
  } else {
    for (const auto& [commit, weight] : found.likely) {
      if (weight > 0.01) result_.bisection.candidates.push_back(commit);
    }
  }
  done_ = true;
}

int Investigation::RuntimeOwner(int commit) const {
  const int owner = bisection_->setup().runtime_of;
  const Outcome* own = OutcomeOf(commit);
  const Outcome* held = OutcomeOf(owner);
  return own && held && own->lock == held->lock ? owner : commit;
}

// A declared pin may have forced one side of the culprit into another runtime.
void Investigation::Cross() {
  const BisectionResult& found = result_.bisection;
  const Outcome* after = OutcomeOf(found.culprit);
  int other = -1;
  for (const int parent : found.parents) {
    const Outcome* before = OutcomeOf(parent);
    if (before && after && before->lock != after->lock) other = parent;
  }
  if (other < 0) {
    done_ = true;
    return;
  }
  doing_ = "crossing commit and runtime";
  const std::optional<Side> old_commit =
      Ask({.commit = other, .run = 1, .runtime_of = RuntimeOwner(found.culprit), .forced = true});
  const std::optional<Side> new_commit =
      Ask({.commit = found.culprit, .run = 1, .runtime_of = RuntimeOwner(other), .forced = true});
  if (!old_commit || !new_commit) return;
  result_.runtime_before = OutcomeOf(other)->lock;
  result_.runtime_after = after->lock;
  const bool commit_alone = *new_commit == found.after;
  const bool runtime_alone = *old_commit == found.after;
  result_.made_by = *old_commit == Side::kNeither || *new_commit == Side::kNeither
                        ? MadeBy::kUndecided
                    : commit_alone && runtime_alone ? MadeBy::kEither
                    : commit_alone                  ? MadeBy::kCommit
                    : runtime_alone                 ? MadeBy::kRuntime
                                                    : MadeBy::kBoth;
  done_ = true;
}

std::vector<Trial> Investigation::WantedBySearch(int room) {
  if (flaky_) return flaky_->Wanted(room);
  if (!bisection_->done()) return bisection_->Wanted(room);
  std::vector<Trial> wanted;
  for (const Trial& trial : asks_) {
    if (static_cast<int>(wanted.size()) < room && !in_flight_.contains(trial))
      wanted.push_back(trial);
  }
  return wanted;
}

std::vector<Trial> Investigation::Wanted(int room) {
  std::vector<Trial> wanted;
  if (done_) return wanted;
  // A search that starts in the middle does not know what the one before it has in flight.
  for (const Trial& trial : WantedBySearch(room)) {
    if (in_flight_.insert(trial).second) wanted.push_back(trial);
  }
  return wanted;
}

}  // namespace bkm
