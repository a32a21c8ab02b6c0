// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/search/history_axis.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

std::string ShortId(const std::string& id) { return id.substr(0, 9); }

// A step in the merged history of two subjects: an index into each mainline.
struct Moment {
  size_t engine = 0, library = 0;
  bool engine_moved = false;
};

// The mainline, oldest first, with the content of each commit.
struct Mainline {
  std::vector<HistoryCommit> commits;
  std::vector<std::string> contents;
};

Mainline MainlineOf(const GitHistory::Commits& commits, const std::vector<std::string>& contents) {
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < commits.size(); ++i) places[commits[i].id] = i;
  Mainline line;
  for (size_t at = commits.size() - 1;;) {
    line.commits.push_back(commits[at]);
    line.contents.push_back(contents[at]);
    const auto parent =
        commits[at].parents.empty() ? places.end() : places.find(commits[at].parents[0]);
    if (commits[at].before || parent == places.end()) break;
    at = parent->second;
  }
  std::reverse(line.commits.begin(), line.commits.end());
  std::reverse(line.contents.begin(), line.contents.end());
  return line;
}

// The merged history of two mainlines, oldest first; each moment adds one commit.
std::vector<Moment> MomentsOf(const Mainline& engines, const Mainline& libraries) {
  std::vector<Moment> moments = {{}};
  // Commit times may decrease; a commit counts as no older than its parent.
  int64_t engine_time = 0, library_time = 0;
  for (Moment now = {};;) {
    const bool engine_left = now.engine + 1 < engines.commits.size();
    const bool library_left = now.library + 1 < libraries.commits.size();
    if (!engine_left && !library_left) break;
    if (engine_left) engine_time = std::max(engine_time, engines.commits[now.engine + 1].time);
    if (library_left)
      library_time = std::max(library_time, libraries.commits[now.library + 1].time);
    now.engine_moved = engine_left && (!library_left || engine_time <= library_time);
    ++(now.engine_moved ? now.engine : now.library);
    moments.push_back(now);
  }
  return moments;
}

}  // namespace

const char* Name(AxisKind kind) {
  return kind == AxisKind::kEngine ? "engine" : kind == AxisKind::kLibrary ? "library" : "both";
}

absl::StatusOr<HistoryAxis::Side> HistoryAxis::HistoryOf(const SubjectSpec& subject, AxisEnds ends,
                                                         GitSources& sources,
                                                         const SourceCatalog& catalog) {
  if (subject.source != SourceKind::kGit) {
    return absl::InvalidArgumentError(
        absl::StrCat(subject.ToString(), " has no commits to search: name a revision, as git:",
                     subject.name.empty() ? "NAME" : subject.name, "@main"));
  }
  Side side{.source = subject.name};
  ASSIGN_OR_RETURN(const GitSources::Found one,
                   sources.Find(subject.name, ends.one.empty() ? subject.revision : ends.one));
  const GitRepository& repository = one.repository;
  std::string late = one.commit;
  if (!ends.other.empty()) {
    ASSIGN_OR_RETURN(const GitSources::Found other, sources.Find(subject.name, ends.other));
    if (other.commit == late) {
      return absl::InvalidArgumentError(absl::StrCat("both ends are ", subject.name, " ",
                                                     ShortId(late), ": name two (--good, --bad)"));
    }
    ASSIGN_OR_RETURN(const std::string base,
                     GitHistory::CommonAncestor(repository, late, other.commit));
    side.early = other.commit;
    if (base == late) {
      side.early = late;
      late = other.commit;
      side.one_is_late = false;
    } else if (base != other.commit) {
      side.early = base;
      side.note = absl::StrCat(ShortId(other.commit), " is not an ancestor of ", ShortId(late),
                               ": the search starts at their merge base, ", ShortId(base));
    }
    ASSIGN_OR_RETURN(side.commits, GitHistory::Between(repository, *side.early, late));
  } else {
    ASSIGN_OR_RETURN(side.commits, GitHistory::Since(repository, late, ends.since));
  }
  const Source* source = catalog.Find(subject.name);
  ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                   GitHistory::PathsThatCount(repository, {late, side.early.value_or(late)},
                                              source ? source->package : subject.name));
  ASSIGN_OR_RETURN(side.contents, GitHistory::ContentAt(repository, side.commits, paths));
  return side;
}

absl::StatusOr<HistoryAxis> HistoryAxis::Create(const PlannedCell& cell, AxisKind kind,
                                                const AxisEnds& ends, GitSources& sources,
                                                const SourceCatalog& catalog) {
  HistoryAxis axis;
  axis.cell_ = cell;
  axis.kind_ = kind;
  const auto needs = [](const char* what, const char* flag) {
    return absl::InvalidArgumentError(
        absl::StrCat("the cell has no ", what, " of its own to search: name it with ", flag));
  };
  if (kind != AxisKind::kLibrary && !cell.cell.engine_subject)
    return needs("engine", "--engine KIND@git:NAME@REV");
  if (kind != AxisKind::kEngine && !cell.cell.library_subject)
    return needs("library", "--library git:NAME@REV");
  if (kind != AxisKind::kBoth) {
    const SubjectSpec& subject =
        kind == AxisKind::kEngine ? *cell.cell.engine_subject : *cell.cell.library_subject;
    ASSIGN_OR_RETURN(Side side, HistoryOf(subject, ends, sources, catalog));
    axis.SetGraph(std::move(side));
    return axis;
  }
  std::vector<AxisEnds> of = {ends, ends};
  for (const auto member : {&AxisEnds::one, &AxisEnds::other}) {
    if ((ends.*member).empty()) continue;
    const std::vector<std::string> parts = absl::StrSplit(ends.*member, ',');
    if (parts.size() != 2) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", ends.*member, "': with --axis both an end is ENGINE_REVISION,LIBRARY_REVISION"));
    }
    of[0].*member = parts[0];
    of[1].*member = parts[1];
  }
  ASSIGN_OR_RETURN(Side engine, HistoryOf(*cell.cell.engine_subject, of[0], sources, catalog));
  ASSIGN_OR_RETURN(Side library, HistoryOf(*cell.cell.library_subject, of[1], sources, catalog));
  RETURN_IF_ERROR(axis.SetLine(std::move(engine), std::move(library)));
  return axis;
}

void HistoryAxis::SetGraph(Side side) {
  std::map<std::string, int> places;
  std::vector<GraphCommit> graph;
  for (size_t i = 0; i < side.commits.size(); ++i) {
    HistoryCommit& commit = side.commits[i];
    GraphCommit node{.content = side.contents[i], .time = commit.time, .before = commit.before};
    for (const std::string& parent : commit.parents) {
      const auto place = places.find(parent);
      if (!commit.before && place != places.end()) node.parents.push_back(place->second);
    }
    places[commit.id] = static_cast<int>(i);
    graph.push_back(std::move(node));
    Place place{.source = side.source};
    (kind_ == AxisKind::kEngine ? place.engine : place.library) = commit.id;
    place.commit = std::move(commit);
    commits_.push_back(std::move(place));
  }
  graph_ = CommitGraph(std::move(graph));
  if (side.early) early_ = places[*side.early];
  one_is_late_ = side.one_is_late;
  note_ = side.note;
}

absl::Status HistoryAxis::SetLine(Side engine, Side library) {
  if (engine.one_is_late != library.one_is_late) {
    return absl::InvalidArgumentError(
        "one end has the newer engine, the other the newer library: with --axis both, one end must "
        "be older in both histories");
  }
  const Mainline engines = MainlineOf(engine.commits, engine.contents);
  const Mainline libraries = MainlineOf(library.commits, library.contents);
  std::vector<Moment> moments = MomentsOf(engines, libraries);
  // Without given ends, both histories start when the later one starts.
  if (!engine.early) {
    const int64_t begin = std::max(engines.commits.front().time, libraries.commits.front().time);
    std::erase_if(moments, [&](const Moment& m) {
      return std::max(engines.commits[m.engine].time, libraries.commits[m.library].time) < begin;
    });
  }
  std::vector<GraphCommit> graph;
  for (const Moment& moment : moments) {
    const HistoryCommit& e = engines.commits[moment.engine];
    const HistoryCommit& l = libraries.commits[moment.library];
    const bool first = graph.empty();
    graph.push_back(
        {.parents = first ? std::vector<int>() : std::vector<int>{int(graph.size()) - 1},
         .content =
             absl::StrCat(engines.contents[moment.engine], "|", libraries.contents[moment.library]),
         .time = std::max(e.time, l.time),
         .before = first && engine.early});
    commits_.push_back({.source = moment.engine_moved ? engine.source : library.source,
                        .commit = moment.engine_moved ? e : l,
                        .engine = e.id,
                        .library = l.id});
  }
  graph_ = CommitGraph(std::move(graph));
  if (engine.early) early_ = 0;
  one_is_late_ = engine.one_is_late;
  note_ = absl::StrCat(engine.note, engine.note.empty() || library.note.empty() ? "" : "; ",
                       library.note);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::pair<int, std::string>>> HistoryAxis::Releases(
    GitSources& sources) const {
  ASSIGN_OR_RETURN(const GitRepository repository, sources.Open(SourceAt(late())));
  ASSIGN_OR_RETURN(const std::vector<std::string> tags, repository.Tags());
  std::map<std::string, int> places;
  for (const int commit : graph_.Mainline(late())) places[CommitAt(commit).id] = commit;
  std::map<int, std::string, std::greater<>> found;
  for (const std::string& tag : tags) {
    const absl::StatusOr<std::string> base = GitHistory::CommonAncestor(
        repository, CommitAt(late()).id, absl::StrCat("refs/tags/", tag));
    // Skip tags of unrelated histories and of commits that a shallow clone lacks.
    const auto place = base.ok() ? places.find(*base) : places.end();
    if (place == places.end() || place->second == late()) continue;
    std::string& names = found[place->second];
    names = names.empty() ? tag : absl::StrCat(tag, ", ", names);
  }
  return std::vector<std::pair<int, std::string>>(found.begin(), found.end());
}

PlannedCell HistoryAxis::CellAt(int commit) const {
  PlannedCell planned = cell_;
  const Place& place = commits_[commit];
  if (!place.engine.empty()) {
    planned.cell.engine_subject->revision = place.engine;
    planned.cell.engine_label = ShortId(place.engine);
  }
  if (!place.library.empty()) {
    planned.cell.library_subject->revision = place.library;
    planned.cell.library_label = ShortId(place.library);
  }
  planned.id = CellId(planned.cell);
  return planned;
}

NamedCommit HistoryAxis::Named(int commit) const {
  const HistoryCommit& c = CommitAt(commit);
  return {.source = SourceAt(commit),
          .id = c.id,
          .date = c.date,
          .title = c.title,
          .pull_request = c.pull_request ? std::optional<int64_t>(c.pull_request) : std::nullopt};
}

}  // namespace bkm
