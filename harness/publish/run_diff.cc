// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/run_diff.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/model/asked_cell.h"
#include "harness/model/engine_kind.h"
#include "harness/report/labels.h"

namespace bkm {
namespace {

bool IsComparable(const CellRecord& cell) {
  // A cell that was ok and is unsupported now is a loss: nothing vouches for it any more.
  const bool judged = cell.verdict && (SaysSomething(*cell.verdict) ||
                                       cell.verdict->kind == VerdictKind::kUnsupported);
  return judged && !cell.is_flaky();
}

std::set<std::string> FailedClaims(const Verdict& verdict) {
  std::set<std::string> claims;
  for (const Finding& failed : verdict.Failed())
    claims.insert(absl::StrCat(failed.claim, ": ", failed.reason));
  return claims;
}

// The claims that failed in `a` and not in `b`; none where one of them, of an older run, has no
// list.
std::vector<std::string> OnlyIn(const Verdict& a, const Verdict& b) {
  std::vector<std::string> claims;
  const std::set<std::string> ours = FailedClaims(a), others = FailedClaims(b);
  if (ours.empty() || others.empty()) return claims;
  std::set_difference(ours.begin(), ours.end(), others.begin(), others.end(),
                      std::back_inserter(claims));
  return claims;
}

bool SameCause(const Verdict& a, const Verdict& b) {
  return a.kind == b.kind && a.stage == b.stage && a.reason == b.reason &&
         MessageWithoutPlace(a.message) == MessageWithoutPlace(b.message) && OnlyIn(a, b).empty() &&
         OnlyIn(b, a).empty();
}

CellChange ChangeOf(const CellPair& pair) {
  if (!pair.before) return CellChange::kNew;
  if (!pair.after) return CellChange::kGone;
  if (!IsComparable(*pair.before) || !IsComparable(*pair.after)) return CellChange::kSpurious;
  const Verdict &before = *pair.before->verdict, &after = *pair.after->verdict;
  const bool was_ok = before.kind == VerdictKind::kOk, is_ok = after.kind == VerdictKind::kOk;
  if (was_ok != is_ok) return was_ok ? CellChange::kRegressed : CellChange::kFixed;
  return SameCause(before, after) ? CellChange::kSame : CellChange::kChangedReason;
}

// The record whose verdict explains the change.
const CellRecord& TellingOf(const CellPair& pair, CellChange change) {
  if (!pair.after || change == CellChange::kFixed) return *pair.before;
  if (change == CellChange::kSpurious && IsComparable(*pair.after)) return *pair.before;
  return *pair.after;
}

PublishedVersion VersionOf(const std::optional<SubjectSpec>& subject, const std::string& label,
                           const std::string& date) {
  return {.subject = subject ? subject->ToString() : "", .label = label, .date = date};
}

// The library; the resolved version if the runtime installs it.
std::optional<SubjectSpec> LibrarySubject(const CellRecord& record) {
  if (record.cell.library_subject || record.library_version.empty())
    return record.cell.library_subject;
  const EngineKind* kind = FindEngineKind(record.cell.engine);
  return SubjectSpec{SourceKind::kPypi, kind ? kind->library_source : "", record.library_version};
}

std::vector<SubjectMove> MovesOf(const CellPair& pair) {
  std::vector<SubjectMove> moves;
  if (!pair.before || !pair.after) return moves;
  const auto add = [&](const std::optional<SubjectSpec>& a, const std::optional<SubjectSpec>& b,
                       PublishedVersion from, PublishedVersion to) {
    if (a == b || !a || !b) return;
    moves.push_back({.source = b->name, .from = std::move(from), .to = std::move(to)});
  };
  const CellRecord &a = *pair.before, &b = *pair.after;
  add(a.cell.engine_subject, b.cell.engine_subject,
      VersionOf(a.cell.engine_subject, a.cell.engine_label, a.engine_date),
      VersionOf(b.cell.engine_subject, b.cell.engine_label, b.engine_date));
  const auto x = LibrarySubject(a), y = LibrarySubject(b);
  add(x, y, VersionOf(x, a.cell.library_label, a.library_date),
      VersionOf(y, b.cell.library_label, b.library_date));
  return moves;
}

void FindCommits(SubjectMove& move, GitSources& sources) {
  const auto from = ParseSubjectSpec(move.from.subject), to = ParseSubjectSpec(move.to.subject);
  if (!from.ok() || !to.ok() || from->source != SourceKind::kGit || to->source != SourceKind::kGit)
    return;
  const auto between = [&](const SubjectSpec& a,
                           const SubjectSpec& b) -> absl::StatusOr<GitHistory::Commits> {
    const absl::StatusOr<GitSources::Found> found = sources.Find(b.name, b.revision);
    if (!found.ok()) return found.status();
    absl::StatusOr<GitHistory::Commits> commits =
        GitHistory::Between(found->repository, a.revision, b.revision);
    if (commits.ok()) std::erase_if(*commits, [](const HistoryCommit& c) { return c.before; });
    return commits;
  };
  absl::StatusOr<GitHistory::Commits> commits = between(*from, *to);
  if (commits.ok() && commits->empty()) {
    commits = between(*to, *from);
    move.back = commits.ok() && !commits->empty();
  }
  if (commits.ok()) {
    move.commits = *std::move(commits);
  } else {
    move.trouble = std::string(commits.status().message());
  }
}

std::vector<PackageMove> PackagesBetween(const std::string& before, const std::string& after,
                                         LockFinder& locks) {
  std::vector<PackageMove> moves;
  if (before.empty() || after.empty() || before == after) return moves;
  const absl::StatusOr<RuntimeLock> a = locks.Find(before), b = locks.Find(after);
  if (!a.ok() || !b.ok()) return moves;
  std::map<std::string, std::pair<std::string, std::string>> versions;
  for (const LockedPackage& package : a->packages) versions[package.name].first = package.version;
  for (const LockedPackage& package : b->packages) versions[package.name].second = package.version;
  for (const auto& [name, change] : versions) {
    if (change.first != change.second) moves.push_back({name, change.first, change.second});
  }
  return moves;
}

// Pairs with equal keys form one group.
std::string GroupKey(const CellPair& pair, CellChange change) {
  const CellRecord& telling = TellingOf(pair, change);
  std::string key = absl::StrCat(Name(change), "\n", OutcomeText(telling), "\n");
  if (telling.verdict) absl::StrAppend(&key, MessageWithoutPlace(telling.verdict->message));
  if (telling.verdict)
    absl::StrAppend(&key, "\n", absl::StrJoin(FailedClaims(*telling.verdict), " "));
  for (const SubjectMove& move : MovesOf(pair))
    absl::StrAppend(&key, "\n", move.from.subject, " ", move.to.subject);
  if (pair.before && pair.after) absl::StrAppend(&key, "\n", pair.before->lock, pair.after->lock);
  return key;
}

// The question of a cell whatever the versions of engine and library.
std::string AskedOfAnyVersion(const CellRecord& record) {
  Cell cell = record.cell;
  for (std::optional<SubjectSpec>* subject : {&cell.engine_subject, &cell.library_subject}) {
    if (*subject) (*subject)->revision = "*";
  }
  cell.engine_label = cell.library_label = "*";
  return AskedText(cell);
}

// A run of one version and a run of another have no cell in the same words. Cells that are only in
// one of the runs correspond if they ask the same of other versions, and no other cell does.
void JoinOtherVersions(std::vector<CellPair>& pairs) {
  std::map<std::string, std::vector<size_t>> gone, added;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (!pairs[i].after) gone[AskedOfAnyVersion(*pairs[i].before)].push_back(i);
    if (!pairs[i].before) added[AskedOfAnyVersion(*pairs[i].after)].push_back(i);
  }
  std::set<size_t> joined;
  for (const auto& [asked, before] : gone) {
    const auto after = added.find(asked);
    if (before.size() != 1 || after == added.end() || after->second.size() != 1) continue;
    pairs[before[0]].after = pairs[after->second[0]].after;
    pairs[before[0]].asked = asked;
    joined.insert(after->second[0]);
  }
  size_t at = 0;
  std::erase_if(pairs, [&](const CellPair&) { return joined.contains(at++); });
}

std::vector<CellPair> PairsOf(const RunRecord& before, const RunRecord& after) {
  std::vector<CellPair> pairs;
  std::map<std::string, size_t> places;
  const auto add = [&](const RunRecord& run, const CellRecord* CellPair::*side) {
    for (const CellRecord& cell : run.cells) {
      if (cell.role != CellRole::kSubject) continue;
      const std::string asked = AskedText(cell.cell);
      const auto [it, is_new] = places.emplace(asked, pairs.size());
      if (is_new) pairs.push_back({.asked = asked});
      pairs[it->second].*side = &cell;
    }
  };
  add(before, &CellPair::before);
  add(after, &CellPair::after);
  JoinOtherVersions(pairs);
  return pairs;
}

}  // namespace

absl::string_view Name(CellChange change) {
  switch (change) {
    case CellChange::kRegressed:
      return "regressed";
    case CellChange::kFixed:
      return "fixed";
    case CellChange::kChangedReason:
      return "changed-reason";
    case CellChange::kNew:
      return "new";
    case CellChange::kGone:
      return "gone";
    case CellChange::kSpurious:
      return "spurious";
    case CellChange::kSame:
      return "same";
  }
  return "";
}

std::string OutcomeText(const CellRecord& record) {
  if (!record.verdict) return "not measured";
  return absl::StrCat(record.is_flaky() ? "flaky: " : "", ShortText(*record.verdict));
}

RunDiff DiffRuns(const RunEvidence& before, const RunEvidence& after, GitSources& sources,
                 LockFinder& locks) {
  RunDiff diff{.before = before.published, .after = after.published};
  std::map<std::string, size_t> places;
  std::vector<CellPair> pairs = PairsOf(before.record, after.record);
  diff.speed = CompareSpeeds(pairs);
  for (CellPair& pair : pairs) {
    const CellChange change = ChangeOf(pair);
    ++diff.counts[change];
    if (change == CellChange::kSame) continue;
    const auto [it, is_new] = places.emplace(GroupKey(pair, change), diff.groups.size());
    if (is_new) {
      const CellRecord& telling = TellingOf(pair, change);
      CauseGroup group{.change = change, .flaky = telling.is_flaky(), .moves = MovesOf(pair)};
      if (telling.verdict) group.verdict = *telling.verdict;
      if (change == CellChange::kChangedReason) {
        group.claims_fixed = OnlyIn(*pair.before->verdict, *pair.after->verdict);
        group.claims_new = OnlyIn(*pair.after->verdict, *pair.before->verdict);
      }
      for (SubjectMove& move : group.moves) FindCommits(move, sources);
      if (pair.before && pair.after)
        group.packages = PackagesBetween(pair.before->lock, pair.after->lock, locks);
      diff.groups.push_back(std::move(group));
    }
    diff.groups[it->second].cells.push_back(std::move(pair));
  }
  std::stable_sort(diff.groups.begin(), diff.groups.end(),
                   [](const CauseGroup& a, const CauseGroup& b) {
                     if (a.change != b.change) return a.change < b.change;
                     return a.cells.size() > b.cells.size();
                   });
  return diff;
}

}  // namespace bkm
