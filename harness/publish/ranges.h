// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_RANGES_H_
#define HARNESS_PUBLISH_RANGES_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/model/subject.h"
#include "harness/publish/published_table.h"
#include "harness/source/git_sources.h"
#include "harness/source/source_catalog.h"

namespace bkm {

// Compares runs of digits as numbers: "1.9" is less than "1.10".
bool VersionLess(absl::string_view a, absl::string_view b);
// Whether two versions are the same release: "2.13.0+cpu" is 2.13.0, and "2.1" is 2.1.0 but not
// 2.13.0.
bool IsSameRelease(absl::string_view a, absl::string_view b);

// Finds what lies between versions of a library: commits from its repository, releases from the
// registry. Versions without an answer are never joined. Answers are cached.
class VersionHistory {
 public:
  // The newest release of a package that is older than a version, or "".
  using ReleaseBefore = std::function<absl::StatusOr<std::string>(const std::string& package,
                                                                  const std::string& version)>;
  VersionHistory(const SourceCatalog& catalog, GitSources& sources, ReleaseBefore release_before)
      : catalog_(catalog), sources_(sources), release_before_(std::move(release_before)) {}

  // The position of a version in the order of its source; 0 for an unknown version.
  int64_t PlaceOf(const SubjectSpec& version);
  // Whether `newer` follows `older` and no version between them could behave differently. Commits
  // that change neither the package nor its requirements do not count, nor do pre-releases and
  // yanked releases.
  bool Follows(const SubjectSpec& older, const SubjectSpec& newer);
  // Lookups that failed, one sentence each.
  const std::vector<std::string>& troubles() const { return troubles_; }

 private:
  absl::StatusOr<bool> CommitFollows(const SubjectSpec& older, const SubjectSpec& newer);
  bool Ask(const std::string& name, const absl::StatusOr<bool>& answer);

  const SourceCatalog& catalog_;
  GitSources& sources_;
  const ReleaseBefore release_before_;
  std::map<std::string, std::map<std::string, int64_t>> places_;  // source -> commit -> position
  std::map<std::pair<std::string, std::string>, bool> follows_;   // (older, newer) subjects
  std::vector<std::string> troubles_;
};

// Joins rows that differ only in the library's version if the versions are neighbors and every
// probe has the same result. Each row has one version; the order does not matter.
std::vector<PublishedRow> JoinRanges(std::vector<PublishedRow> rows, VersionHistory& history);

}  // namespace bkm

#endif  // HARNESS_PUBLISH_RANGES_H_
