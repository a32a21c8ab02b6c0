// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/search/bisection.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "harness/search/split.h"

namespace bkm {
namespace {

constexpr int64_t kDay = 86400;
// How many repeats of one side of the culprit may stay unjudged before the search gives up.
constexpr int kConfirmations = 3;

// How often a side of the culprit is measured again. A cell that is flaky mostly fails by chance
// and seldom works by chance, so the bad side needs more: a cell that fails half of the time fails
// five times in a row in 3 % of all cases.
int RepeatsOf(Side side) { return side == Side::kBad ? 4 : 1; }

// On the mainline of `late`: the newest commits that are at least 1, 2, 4, ... days older, and the
// oldest commit.
std::vector<int> StepsBack(const CommitGraph& graph, int late) {
  std::vector<int> steps;
  int64_t days = 1;
  const std::vector<int> line = graph.Mainline(late);
  for (size_t i = 1; i < line.size(); ++i) {
    const bool last = i + 1 == line.size();
    if (!last && graph.time(line[i]) > graph.time(late) - days * kDay) continue;
    steps.push_back(line[i]);
    while (graph.time(line[i]) <= graph.time(late) - days * kDay) days *= 2;
  }
  return steps;
}

}  // namespace

Bisection::Bisection(const CommitGraph& graph, BisectionSetup setup)
    : graph_(graph), setup_(std::move(setup)) {
  if (!setup_.early) steps_ = setup_.steps.empty() ? StepsBack(graph_, setup_.late) : setup_.steps;
  Update();
}

void Bisection::Tell(const Trial& trial, const Outcome& outcome) {
  in_flight_.erase(trial);
  if (trial.runtime_of != setup_.runtime_of || trial.forced) return;
  told_[trial] = outcome.verdict;
  Update();
}

const Verdict* Bisection::Known(int commit) const {
  const auto it = known_.find(graph_.content(commit));
  return it == known_.end() ? nullptr : it->second;
}

std::string Bisection::SignatureOf(int commit) const {
  const Verdict* verdict = Known(commit);
  return verdict ? ShortText(*verdict) : "not measured";
}

Side Bisection::Classify(const Verdict& verdict) const {
  return setup_.criterion.SideOf(verdict, good_signature_);
}

void Bisection::Finish(SearchStatus status, std::string why) {
  phase_ = Phase::kDone;
  result_.status = status;
  result_.why = std::move(why);
}

void Bisection::Update() {
  phase_ = Phase::kEnds;
  result_ = {.early = setup_.early, .late = setup_.late};
  asks_.clear();
  known_.clear();
  good_signature_.clear();
  // Trials are sorted by commit, then run. The first judged one stands for all equal content.
  for (const auto& [trial, verdict] : told_) {
    const Verdict*& known = known_[graph_.content(trial.commit)];
    // A judged run replaces one that could not be judged.
    if (!known || Classify(*known) == Side::kNeither) known = &verdict;
  }
  sides_.assign(graph_.size(), std::nullopt);
  if (!FindEnds()) return Presume();
  ClassifyAll();
  for (const auto& [trial, verdict] : told_) {
    const Side side = Classify(verdict);
    if (side == Side::kNeither || *sides_[trial.commit] == Side::kNeither ||
        side == *sides_[trial.commit])
      continue;
    result_.candidates = {trial.commit};
    return Finish(
        SearchStatus::kUnstable,
        "equal content was good and bad: the cell is flaky, or something that it depends on is");
  }
  Narrow();
}

void Bisection::ClassifyAll() {
  for (int i = 0; i < graph_.size(); ++i) {
    if (const Verdict* verdict = Known(i)) sides_[i] = Classify(*verdict);
  }
}

void Bisection::Presume() {
  if (done() || !setup_.early) return;
  const Verdict* late = Known(setup_.late);
  const Verdict* early = Known(*setup_.early);
  const Side side = late ? Classify(*late) : early ? Opposite(Classify(*early)) : Side::kBad;
  if (early && Classify(*early) == Side::kNeither) return;
  result_.after = side;
  result_.before = Opposite(side);
  // Outcomes can only be classified once an end is known.
  if (late || early) ClassifyAll();
  sides_[setup_.late] = result_.after;
  sides_[*setup_.early] = result_.before;
  FindTip();
}

bool Bisection::FindEnds() {
  const Verdict* late = Known(setup_.late);
  if (!late) asks_.push_back(MakeTrial(setup_.late, 1));
  if (setup_.early && !Known(*setup_.early) && !EarlyMayWait())
    asks_.push_back(MakeTrial(*setup_.early, 1));
  if (!late) {
    for (const int step : steps_) {
      if (!Known(step)) asks_.push_back(MakeTrial(step, 1));
    }
    return false;
  }
  if (Classify(*late) == Side::kNeither) {
    Finish(SearchStatus::kNone, absl::StrCat("the newer end cannot be judged (",
                                             SignatureOf(setup_.late), "): name another"));
    return false;
  }
  if (Classify(*late) == Side::kGood) good_signature_ = ShortText(*late);
  if (!setup_.early && !FindEarly(Classify(*late))) return false;
  return Known(*result_.early) ? CompareEnds() : FindEarlySubstitute(Classify(*late));
}

bool Bisection::EarlyMayWait() const {
  if (setup_.suspects.empty()) return false;
  // With patterns, only the good end defines what is good.
  const Verdict* late = Known(setup_.late);
  return !setup_.criterion.by_pattern() || (late && Classify(*late) == Side::kGood);
}

bool Bisection::FindEarlySubstitute(Side late) {
  if (!EarlyMayWait()) return false;
  result_.before = Opposite(late);
  result_.after = late;
  return std::any_of(told_.begin(), told_.end(), [&](const auto& told) {
    const int commit = told.first.commit;
    return Classify(*Known(commit)) == result_.before && graph_.IsAncestor(*setup_.early, commit);
  });
}

// Takes the first step back that is on the other side; skips steps that cannot be judged.
bool Bisection::FindEarly(Side late) {
  for (const int step : steps_) {
    const Verdict* verdict = Known(step);
    if (!verdict) asks_.push_back(MakeTrial(step, 1));
    if (!verdict || !asks_.empty() || Classify(*verdict) != Opposite(late)) continue;
    result_.early = step;
    return true;
  }
  if (asks_.empty()) {
    Finish(SearchStatus::kNone,
           absl::StrCat("the cell is ", Name(late), " (", SignatureOf(setup_.late),
                        ") as far back as ",
                        setup_.steps.empty() ? "the history goes" : "the first release"));
  }
  return false;
}

bool Bisection::CompareEnds() {
  const Side late = Classify(*Known(setup_.late));
  const Verdict& verdict = *Known(*result_.early);
  if (late == Side::kBad && Classify(verdict) == Side::kGood) good_signature_ = ShortText(verdict);
  const Side early = Classify(verdict);
  result_.before = early;
  result_.after = late;
  if (early == Opposite(late)) return true;
  const std::string signature = SignatureOf(*result_.early);
  Finish(SearchStatus::kNone,
         early == late ? absl::StrCat("both ends are ", Name(late), " (older: ", signature,
                                      "; newer: ", SignatureOf(setup_.late), ")")
                       : absl::StrCat("the older end is neither good nor bad (", signature,
                                      "): name another"));
  return false;
}

std::vector<int> Bisection::CandidatesOf(int tip) const {
  std::vector<int> candidates = graph_.Ancestors(tip);
  std::vector<int> old;
  for (const int commit : candidates) {
    const bool implied = graph_.before(commit) && sides_[commit] != result_.after;
    if (sides_[commit] == result_.before || implied) old.push_back(commit);
  }
  std::erase_if(candidates, [&](int commit) {
    return commit != tip && std::any_of(old.begin(), old.end(), [&](int known) {
             return graph_.IsAncestor(commit, known);
           });
  });
  return candidates;
}

std::optional<int> Bisection::SmallerTip(const std::vector<int>& candidates, int tip) const {
  std::optional<int> best;
  size_t fewest = candidates.size();
  for (const int commit : candidates) {
    if (commit == tip || sides_[commit] != result_.after) continue;
    const size_t count = CandidatesOf(commit).size();
    if (count >= fewest) continue;
    fewest = count;
    best = commit;
  }
  return best;
}

std::optional<int> Bisection::ParentOnSide(int commit, Side side) const {
  for (const int parent : graph_.parents(commit)) {
    if (sides_[parent] == side) return parent;
  }
  return std::nullopt;
}

void Bisection::FindTip() {
  tip_ = setup_.late;
  for (;;) {
    result_.candidates = CandidatesOf(tip_);
    std::optional<int> next = SmallerTip(result_.candidates, tip_);
    // A commit of a merged branch is assumed to be in the old state because a descendant is. If it
    // turns out not to be, the boundary lies before it.
    if (!next && result_.candidates.size() == 1) next = ParentOnSide(tip_, result_.after);
    if (!next) return;
    tip_ = *next;
  }
}

void Bisection::Narrow() {
  phase_ = Phase::kSplitting;
  FindTip();
  if (graph_.before(tip_)) {
    return Finish(SearchStatus::kAmbiguous,
                  "a merged branch is in the newer end's state where the history starts");
  }
  if (result_.candidates.size() == 1) return Confirm();
  if (Open().empty() && in_flight_.empty()) {
    Finish(SearchStatus::kAmbiguous,
           absl::StrCat(result_.candidates.size() - 1, " commits before the first known ",
                        Name(result_.after), " one cannot be judged"));
  }
}

std::vector<int> Bisection::Open() const {
  std::set<int> busy;
  for (const Trial& trial : in_flight_) busy.insert(graph_.content(trial.commit));
  std::vector<int> open;
  std::set<int> contents;
  for (const int commit : result_.candidates) {
    if (Known(commit) || commit == tip_ || busy.contains(graph_.content(commit))) continue;
    if (contents.insert(graph_.content(commit)).second) open.push_back(commit);
  }
  return open;
}

bool Bisection::IsCandidate(int commit) const {
  const auto& candidates = result_.candidates;
  return std::find(candidates.begin(), candidates.end(), commit) != candidates.end();
}

std::vector<int> Bisection::BothSides(int suspect) const {
  std::vector<int> both = {suspect};
  if (!graph_.parents(suspect).empty()) both.push_back(graph_.parents(suspect)[0]);
  if (result_.after == Side::kBad) std::reverse(both.begin(), both.end());
  return both;
}

std::vector<int> Bisection::AboutSuspects() const {
  const std::vector<int> open = Open();
  std::vector<int> about;
  for (const int suspect : setup_.suspects) {
    if (!IsCandidate(suspect)) continue;
    for (const int commit : BothSides(suspect)) {
      const bool known = std::find(about.begin(), about.end(), commit) != about.end();
      if (!known && std::find(open.begin(), open.end(), commit) != open.end())
        about.push_back(commit);
    }
  }
  return about;
}

std::vector<Trial> Bisection::EarlyConfirmations() const {
  std::vector<Trial> confirmations;
  if (setup_.suspects.size() != 1 || !IsCandidate(setup_.suspects[0])) return confirmations;
  for (const int commit : BothSides(setup_.suspects[0])) {
    const int repeats = RepeatsOf(commit == setup_.suspects[0] ? result_.after : result_.before);
    for (int run = 2; run <= 1 + repeats; ++run) {
      if (!told_.contains(MakeTrial(commit, run))) confirmations.push_back(MakeTrial(commit, run));
    }
  }
  return confirmations;
}

void Bisection::Confirm() {
  phase_ = Phase::kConfirming;
  std::vector<int> both = {tip_};
  for (const int parent : graph_.parents(tip_)) both.push_back(parent);
  bool confirmed = true;
  for (const int commit : both) {
    const Side side = commit == tip_ ? result_.after : result_.before;
    int agree = 0, repeats = 0, unjudged = 0;
    for (const auto& [trial, verdict] : told_) {
      if (graph_.content(trial.commit) != graph_.content(commit)) continue;
      const bool again = trial.commit == commit && trial.run > 1;
      const bool agrees = Classify(verdict) == side;  // else it could not be judged
      agree += agrees;
      repeats += again && agrees;
      unjudged += again && !agrees;
    }
    if (repeats >= RepeatsOf(side) && agree > 1) continue;
    confirmed = false;
    if (in_flight_.contains(MakeTrial(commit, 1))) continue;
    if (unjudged == kConfirmations) {
      return Finish(SearchStatus::kUnstable,
                    absl::StrCat("a side of the culprit could not be confirmed: ", kConfirmations,
                                 " repeats could not be judged"));
    }
    int missing = std::max(RepeatsOf(side) - repeats, 1);
    for (int run = 2; missing > 0; ++run) {
      if (told_.contains(MakeTrial(commit, run))) continue;
      asks_.push_back(MakeTrial(commit, run));
      --missing;
    }
  }
  if (!confirmed) {
    // Both sides at once: the good one often takes longer.
    std::stable_sort(asks_.begin(), asks_.end(),
                     [](const Trial& a, const Trial& b) { return a.run < b.run; });
    return;
  }
  result_.culprit = tip_;
  result_.parents = graph_.parents(tip_);
  Finish(SearchStatus::kFound, "");
}

std::vector<Trial> Bisection::Wanted(int room) {
  std::vector<Trial> wanted;
  if (done()) return wanted;
  const auto take = [&](const Trial& trial) {
    if (static_cast<int>(wanted.size()) < room && in_flight_.insert(trial).second)
      wanted.push_back(trial);
  };
  for (const Trial& trial : asks_) take(trial);
  const bool presumed = phase_ == Phase::kEnds && setup_.early;
  if (phase_ != Phase::kSplitting && !presumed) return wanted;
  for (const int commit : AboutSuspects()) take(MakeTrial(commit, 1));
  for (const Trial& trial : EarlyConfirmations()) take(trial);
  if (presumed && !Known(*setup_.early)) take(MakeTrial(*setup_.early, 1));
  const int left = room - static_cast<int>(wanted.size());
  if (left <= 0) return wanted;
  SplitQuestion question{.candidates = result_.candidates, .open = Open()};
  for (const int commit : result_.candidates) {
    if (sides_[commit] == Side::kNeither) question.skipped.push_back(commit);
  }
  for (const Trial& trial : in_flight_) question.in_flight.push_back(trial.commit);
  // Outcomes told before the ends also cut the candidates, once an end is known.
  if (presumed) {
    for (const auto& [trial, verdict] : told_) question.in_flight.push_back(trial.commit);
  }
  for (const int commit : BestSplits(graph_, question, left)) take(MakeTrial(commit, 1));
  return wanted;
}

}  // namespace bkm
