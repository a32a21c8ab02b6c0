// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/ranges.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/status_macros.h"
#include "harness/model/sandbox_level.h"
#include "harness/report/labels.h"
#include "harness/source/git_history.h"

namespace bkm {
namespace {

SubjectSpec SpecOf(const PublishedVersion& version) {
  return ParseSubjectSpec(version.subject).value_or(SubjectSpec());
}

// The cell's id without its engine and library.
std::string ProbeOf(const PublishedCell& cell) {
  std::vector<std::string> kept;
  for (absl::string_view field : absl::StrSplit(cell.id, ',')) {
    if (!absl::StartsWith(field, "engine=") && !absl::StartsWith(field, "library="))
      kept.emplace_back(field);
  }
  return absl::StrJoin(kept, ",");
}

// The result of every probe of a row. Rows with equal texts differ only in their version.
std::string OutcomeOf(const PublishedRow& row) {
  std::vector<std::string> lines;
  for (const PublishedCell& cell : row.cells) {
    const Verdict& verdict = cell.evidence.verdict;
    lines.push_back(absl::StrCat(ProbeOf(cell), " ", Name(verdict.kind), " ", Name(verdict.stage),
                                 " ", verdict.reason, " ", MessageWithoutPlace(verdict.message),
                                 cell.flaky ? " flaky" : ""));
  }
  std::sort(lines.begin(), lines.end());
  return absl::StrJoin(lines, "\n");
}

bool IsFlaky(const PublishedRow& row) {
  return std::any_of(row.cells.begin(), row.cells.end(),
                     [](const PublishedCell& cell) { return cell.flaky; });
}

// Appends the row of the next version to `range`.
void Extend(PublishedRow next, PublishedRow& range) {
  next.library_from = range.library_from;
  range.library_versions.push_back(next.library_to);
  next.library_versions = std::move(range.library_versions);
  next.cells.insert(next.cells.end(), std::make_move_iterator(range.cells.begin()),
                    std::make_move_iterator(range.cells.end()));
  next.measured = std::min(next.measured, range.measured);
  next.expires = std::min(next.expires, range.expires);
  next.sandbox = WeakerLevel(next.sandbox, range.sandbox);
  range = std::move(next);
}

}  // namespace

bool VersionLess(absl::string_view a, absl::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (absl::ascii_isdigit(a[0]) && absl::ascii_isdigit(b[0])) {
      const auto number = [](absl::string_view& text) {
        const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
        absl::string_view digits = text.substr(0, end);
        text.remove_prefix(end);
        while (digits.size() > 1 && digits[0] == '0') digits.remove_prefix(1);
        return digits;
      };
      const absl::string_view x = number(a), y = number(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (a[0] != b[0]) return a[0] < b[0];
    a.remove_prefix(1), b.remove_prefix(1);
  }
  return a.size() < b.size();
}

bool IsSameRelease(absl::string_view a, absl::string_view b) {
  const auto release = [](absl::string_view version) {
    version = version.substr(0, version.find('+'));
    while (absl::ConsumeSuffix(&version, ".0")) {
    }
    return version;
  };
  return release(a) == release(b);
}

bool VersionHistory::Ask(const std::string& name, const absl::StatusOr<bool>& answer) {
  if (answer.ok()) return *answer;
  const std::string trouble =
      absl::StrCat("no ranges of ", name, ": ", std::string(answer.status().message()));
  if (std::find(troubles_.begin(), troubles_.end(), trouble) == troubles_.end())
    troubles_.push_back(trouble);
  return false;
}

int64_t VersionHistory::PlaceOf(const SubjectSpec& version) {
  const auto [it, is_new] = places_.emplace(version.name, std::map<std::string, int64_t>());
  if (is_new) {
    const absl::StatusOr<GitRepository> repository = sources_.Open(version.name);
    const absl::StatusOr<std::string> commits =
        repository.ok() ? repository->Output({"rev-list", "--topo-order", "--reverse", "--all"})
                        : repository.status();
    if (!commits.ok()) Ask(version.name, commits.status());
    int64_t place = 0;
    for (absl::string_view id : absl::StrSplit(commits.value_or(""), '\n', absl::SkipEmpty()))
      it->second.emplace(id, ++place);
  }
  const auto place = it->second.find(version.revision);
  return place == it->second.end() ? 0 : place->second;
}

absl::StatusOr<bool> VersionHistory::CommitFollows(const SubjectSpec& older,
                                                   const SubjectSpec& newer) {
  ASSIGN_OR_RETURN(const GitRepository repository, sources_.Open(newer.name));
  ASSIGN_OR_RETURN(GitHistory::Commits commits,
                   GitHistory::Between(repository, older.revision, newer.revision));
  const auto is_older = [&](const HistoryCommit& c) { return c.id == older.revision; };
  // `newer` does not descend from `older` if the history does not start with it.
  if (commits.empty() || std::none_of(commits.begin(), commits.end(), is_older)) return false;
  std::erase_if(commits, [&](const HistoryCommit& c) { return c.before && !is_older(c); });
  if (commits.size() == 2) return true;
  const Source* source = catalog_.Find(newer.name);
  ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                   GitHistory::PathsThatCount(repository, {older.revision, newer.revision},
                                              source ? source->package : newer.name));
  ASSIGN_OR_RETURN(const std::vector<std::string> contents,
                   GitHistory::ContentAt(repository, commits, paths));
  std::string before, after;
  for (size_t i = 0; i < commits.size(); ++i) {
    if (is_older(commits[i])) before = contents[i];
    if (commits[i].id == newer.revision) after = contents[i];
  }
  return std::all_of(contents.begin(), contents.end(), [&](const std::string& content) {
    return content == before || content == after;
  });
}

bool VersionHistory::Follows(const SubjectSpec& older, const SubjectSpec& newer) {
  if (older.source != newer.source || older.name != newer.name) return false;
  const auto [it, is_new] = follows_.emplace(std::pair(older.ToString(), newer.ToString()), false);
  if (!is_new) return it->second;
  if (newer.source == SourceKind::kGit) {
    it->second = Ask(newer.name, CommitFollows(older, newer));
  } else if (newer.source == SourceKind::kPypi) {
    const absl::StatusOr<std::string> before = release_before_(newer.name, newer.revision);
    it->second = before.ok() ? *before == older.revision : Ask(newer.name, before.status());
  }
  return it->second;
}

std::vector<PublishedRow> JoinRanges(std::vector<PublishedRow> rows, VersionHistory& history) {
  using Group = std::tuple<std::string, std::string, std::string, std::string, std::string,
                           std::string, std::string>;
  std::map<Group, std::vector<PublishedRow>> groups;
  for (PublishedRow& row : rows) {
    const SubjectSpec library = SpecOf(row.library_to);
    groups[{row.engine, row.engine_version.subject, library.name,
            library.source == SourceKind::kGit ? "git" : "pypi", row.runtime,
            absl::StrCat(row.torch, " ", row.device), absl::StrJoin(row.relax, " ")}]
        .push_back(std::move(row));
  }
  std::vector<PublishedRow> joined;
  for (auto& [group, members] : groups) {
    // Oldest version first. One version in several locks: newest evidence last.
    std::stable_sort(members.begin(), members.end(),
                     [&](const PublishedRow& a, const PublishedRow& b) {
                       const SubjectSpec x = SpecOf(a.library_to), y = SpecOf(b.library_to);
                       if (x == y) return a.measured < b.measured;
                       if (x.source == SourceKind::kGit) {
                         return std::pair(history.PlaceOf(x), x.revision) <
                                std::pair(history.PlaceOf(y), y.revision);
                       }
                       return VersionLess(x.revision, y.revision);
                     });
    std::string outcome_before;  // of the previous version; empty if it cannot be joined
    for (PublishedRow& row : members) {
      const std::string outcome = IsFlaky(row) ? "" : OutcomeOf(row);
      const bool joins = !outcome.empty() && outcome == outcome_before &&
                         history.Follows(SpecOf(joined.back().library_to), SpecOf(row.library_to));
      outcome_before = outcome;
      if (joins) {
        Extend(std::move(row), joined.back());
      } else {
        joined.push_back(std::move(row));
      }
    }
  }
  return joined;
}

}  // namespace bkm
