// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_APICHECK_VERSIONS_H_
#define HARNESS_APICHECK_VERSIONS_H_

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/apicheck/api_check.h"
#include "harness/model/subject.h"
#include "harness/source/git_history.h"
#include "harness/source/git_sources.h"
#include "harness/source/source_catalog.h"
#include "harness/source/subject_resolver.h"

namespace bkm {

// One version of an engine or library, with its tree.
struct CheckedVersion {
  SubjectSpec spec;   // resolved
  std::string label;  // as the user wrote it; the short id for a commit of a range
  std::string date;   // YYYY-MM-DD; empty for a path
  std::string title;  // first line of the commit message; empty unless git
  Tree tree;          // null: the commit lacks the package
};

// Finds the source trees that a check needs. Commits are read from the object store, all at once;
// PyPI packages and folders through the SubjectResolver.
class Versions {
 public:
  struct Options {
    std::filesystem::path cache;
    std::filesystem::path mirrors;  // folder with NAME.git; may be empty
    std::filesystem::path python;
    std::filesystem::path folder;  // base of relative path subjects; empty: the current folder
  };
  Versions(const SourceCatalog& catalog, Options options, SymbolTables& tables);

  // The versions that `texts` name, in order: subject specs, and git:NAME@A..B for the commits that
  // B reaches and A does not, the oldest first.
  absl::StatusOr<std::vector<CheckedVersion>> Find(const std::vector<std::string>& texts);

  // The commits that `tip` of the source reaches, from `since` (YYYY-MM-DD) on, the oldest first.
  absl::StatusOr<std::vector<CheckedVersion>> Since(const std::string& source,
                                                    const std::string& tip,
                                                    const std::string& since);
  // The trees of commits of a source, in their order; null if a commit lacks the package.
  absl::StatusOr<std::vector<Tree>> TreesAt(const std::string& source,
                                            const std::vector<std::string>& commits);
  // The tree of a package in `folder`, such as an environment's site-packages.
  absl::StatusOr<Tree> InFolder(const std::filesystem::path& folder, const std::string& package) {
    return FolderTree(tables_, folder, package);
  }
  // Tags of the source, by commit.
  absl::StatusOr<std::map<std::string, std::string>> Releases(const std::string& source);

 private:
  absl::StatusOr<std::vector<CheckedVersion>> FindOne(const std::string& text);
  absl::StatusOr<std::vector<CheckedVersion>> Of(const std::string& source,
                                                 const GitHistory::Commits& commits);

  const SourceCatalog& catalog_;
  const Options options_;
  SymbolTables& tables_;
  GitSources git_;
  std::map<std::string, std::unique_ptr<GitTrees>> trees_;  // by source
  std::unique_ptr<SubjectResolver> subjects_;
};

}  // namespace bkm

#endif  // HARNESS_APICHECK_VERSIONS_H_
