// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_SUBJECT_RESOLVER_H_
#define HARNESS_SOURCE_SUBJECT_RESOLVER_H_

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/model/subject.h"
#include "harness/source/git_objects.h"
#include "harness/source/git_sources.h"
#include "harness/source/package_metadata.h"
#include "harness/source/source_builds.h"
#include "harness/source/source_catalog.h"
#include "harness/source/tree_listing.h"
#include "harness/source/tree_views.h"
#include "harness/source/uv.h"
#include "harness/store/folder_cache.h"

namespace bkm {

// Turns specs into subjects: finds the exact version, puts its source tree into the cache and reads
// its declarations. Needs no network for what is in the cache. Thread-safe.
class SubjectResolver {
 public:
  struct Options {
    std::filesystem::path cache;    // parent of the folders for trees, clones and registry answers
    std::filesystem::path mirrors;  // DIR/NAME.git; may be empty
    std::filesystem::path python;   // compiles trees; must be the version that runs the cells
    std::filesystem::path folder;   // base of relative paths; empty: the working directory
    // Takes a sentence about a damaged part of the cache, which is made again.
    std::function<void(const std::string&)> report = [](const std::string&) {};
  };
  SubjectResolver(const SourceCatalog& catalog, Uv uv, Options options);

  // NotFound: no such package, version, source, revision or folder. Unavailable: network. The
  // message is one sentence that says what to do. What is wrong with the content of the subject,
  // such as a tree or requirement that is not allowed, is not an error: see
  // Subject::fault.
  absl::StatusOr<Subject> Resolve(const SubjectSpec& spec);

  // The files of a resolved subject, with paths below `subject.tree`. Null for a path subject,
  // whose files may change at any time, and for a package of the runtime.
  absl::StatusOr<std::shared_ptr<const TreeListing>> Listing(const Subject& subject);

  GitSources& git() { return git_; }

 private:
  struct Release {  // of a PyPI package
    std::string name;
    std::string version;
    std::string date;
    std::vector<std::string> sha256;
  };
  // PermissionDenied, InvalidArgument, Aborted: the content's fault. Then `subject` is filled as
  // far as possible.
  absl::Status ResolveInto(const SubjectSpec& spec, Subject& subject);
  absl::Status ResolveGit(const SubjectSpec& spec, Subject& subject);
  absl::Status ResolvePypi(const SubjectSpec& spec, Subject& subject);
  absl::Status ResolvePath(const SubjectSpec& spec, Subject& subject);

  absl::StatusOr<GitObjects*> ObjectsOf(const GitRepository& repository);
  absl::Status MakeGitTree(const GitSources::Found& found, const Source& source,
                           const std::filesystem::path& folder);
  // The requirements that `declarations`, the files beside the package, declare.
  absl::StatusOr<std::vector<std::string>> RequirementsOf(
      const std::filesystem::path& tree, const std::vector<GitEntry>& declarations);

  absl::StatusOr<Release> FindRelease(const SubjectSpec& spec) const;
  absl::Status NoSuchRelease(const SubjectSpec& spec, const std::string& complaint) const;
  absl::Status Install(const Release& release, const std::filesystem::path& folder) const;
  // The import name: the catalog's if it has one, otherwise the one found in the tree. Aborted:
  // there is none.
  absl::StatusOr<std::string> PackageIn(const std::filesystem::path& tree,
                                        const std::string& name) const;

  const SourceCatalog& catalog_;
  const Uv uv_;
  const Options options_;
  const PackageReader reader_;
  const SourceBuilds builds_;
  GitSources git_;
  const FolderCache trees_;
  TreeViews views_;
  std::mutex mutex_;
  std::map<std::filesystem::path, std::unique_ptr<GitObjects>> objects_;          // by repository
  std::map<std::filesystem::path, std::shared_ptr<const TreeListing>> listings_;  // by tree
};

}  // namespace bkm

#endif  // HARNESS_SOURCE_SUBJECT_RESOLVER_H_
