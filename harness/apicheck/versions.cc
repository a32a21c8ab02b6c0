// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/versions.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

constexpr absl::string_view kRange = "..";
constexpr int kShortId = 9;

}  // namespace

Versions::Versions(const SourceCatalog& catalog, Options options, SymbolTables& tables)
    : catalog_(catalog),
      options_(std::move(options)),
      tables_(tables),
      git_(catalog_, options_.mirrors, options_.cache / "git") {}

absl::StatusOr<std::vector<CheckedVersion>> Versions::Of(const std::string& source,
                                                         const GitHistory::Commits& commits) {
  std::vector<CheckedVersion> versions;
  for (const HistoryCommit& commit : commits) {
    if (commit.before) continue;
    versions.push_back({.spec = {SourceKind::kGit, source, commit.id},
                        .label = commit.id.substr(0, kShortId),
                        .date = commit.date,
                        .title = commit.title});
  }
  std::vector<std::string> ids;
  for (const CheckedVersion& version : versions) ids.push_back(version.spec.revision);
  ASSIGN_OR_RETURN(const std::vector<Tree> trees, TreesAt(source, ids));
  for (size_t i = 0; i < versions.size(); ++i) versions[i].tree = trees[i];
  return versions;
}

absl::StatusOr<std::vector<Tree>> Versions::TreesAt(const std::string& source,
                                                    const std::vector<std::string>& commits) {
  const Source& found = *catalog_.Find(source);
  std::unique_ptr<GitTrees>& trees = trees_[found.name];
  if (!trees) {
    ASSIGN_OR_RETURN(GitRepository repository, git_.Open(source));
    trees = std::make_unique<GitTrees>(std::move(repository), found.package, tables_);
  }
  return trees->Load(commits);
}

absl::StatusOr<std::vector<CheckedVersion>> Versions::FindOne(const std::string& text) {
  // Only a git spec can be a range: a path may contain dots.
  const size_t range = absl::StartsWith(text, "git:") ? text.find(std::string(kRange)) : text.npos;
  const std::string range_end = range == text.npos ? "" : text.substr(range + kRange.size());
  ASSIGN_OR_RETURN(const SubjectSpec spec, ParseSubjectSpec(text.substr(0, range)));
  if (spec.source != SourceKind::kGit) {
    if (!subjects_) {
      ASSIGN_OR_RETURN(Uv uv, Uv::Find());
      subjects_ =
          std::make_unique<SubjectResolver>(catalog_, uv,
                                            SubjectResolver::Options{.cache = options_.cache,
                                                                     .mirrors = options_.mirrors,
                                                                     .python = options_.python,
                                                                     .folder = options_.folder});
    }
    ASSIGN_OR_RETURN(const Subject subject, subjects_->Resolve(spec));
    if (subject.fault) {
      return absl::FailedPreconditionError(absl::StrCat(text, ": ", subject.fault->message));
    }
    if (subject.tree.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(text, " is a package of the runtime; only source trees can be checked"));
    }
    ASSIGN_OR_RETURN(Tree tree, FolderTree(tables_, subject.tree, subject.package));
    return std::vector<CheckedVersion>{{.spec = subject.spec,
                                        .label = subject.label,
                                        .date = subject.date,
                                        .tree = std::move(tree)}};
  }
  if (!range_end.empty()) {
    ASSIGN_OR_RETURN(const auto from, git_.Find(spec.name, spec.revision));
    ASSIGN_OR_RETURN(const auto to, git_.Find(spec.name, range_end));
    const std::string name = catalog_.Find(spec.name)->name;
    ASSIGN_OR_RETURN(const GitHistory::Commits commits,
                     GitHistory::Between(to.repository, from.commit, to.commit));
    ASSIGN_OR_RETURN(auto versions, Of(name, commits));
    if (versions.empty()) {
      return absl::NotFoundError(absl::StrCat(text,
                                              ": the range is empty (A..B are the commits that "
                                              "B reaches and A does not)"));
    }
    return versions;
  }
  ASSIGN_OR_RETURN(const GitSources::Found found, git_.Find(spec.name, spec.revision));
  const std::string name = catalog_.Find(spec.name)->name;
  ASSIGN_OR_RETURN(const Commit commit, found.repository.Describe(found.commit));
  ASSIGN_OR_RETURN(auto versions,
                   Of(name, {{.id = commit.id, .date = commit.date, .title = commit.title}}));
  for (CheckedVersion& version : versions) {
    version.label = spec.revision;
    if (!version.tree) {
      return absl::NotFoundError(absl::StrCat(text, ": commit ", found.commit, " has no folder ",
                                              catalog_.Find(spec.name)->package));
    }
  }
  return versions;
}

absl::StatusOr<std::vector<CheckedVersion>> Versions::Find(const std::vector<std::string>& texts) {
  std::vector<CheckedVersion> versions;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(const std::vector<CheckedVersion> more, FindOne(text));
    versions.insert(versions.end(), more.begin(), more.end());
  }
  return versions;
}

absl::StatusOr<std::vector<CheckedVersion>> Versions::Since(const std::string& source,
                                                            const std::string& tip,
                                                            const std::string& since) {
  ASSIGN_OR_RETURN(const GitSources::Found found, git_.Find(source, tip));
  ASSIGN_OR_RETURN(const GitHistory::Commits commits,
                   GitHistory::Since(found.repository, found.commit, since));
  return Of(catalog_.Find(source)->name, commits);
}

absl::StatusOr<std::map<std::string, std::string>> Versions::Releases(const std::string& source) {
  ASSIGN_OR_RETURN(const GitRepository repository, git_.Open(source));
  ASSIGN_OR_RETURN(const std::string text,
                   repository.Output({"for-each-ref", "--sort=-creatordate", "refs/tags",
                                      "--format=%(refname:short) %(*objectname) %(objectname)"}));
  std::map<std::string, std::string> releases;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    // An annotated tag has its commit in the second field; for a plain tag that field is empty.
    const std::vector<std::string> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (fields.size() >= 2) releases[fields[1]] = fields[0];
  }
  return releases;
}

}  // namespace bkm
