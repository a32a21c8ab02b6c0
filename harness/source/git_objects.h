// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_GIT_OBJECTS_H_
#define HARNESS_SOURCE_GIT_OBJECTS_H_

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/subprocess.h"
#include "harness/source/git_repository.h"

namespace bkm {

// Reads a repository's objects through one long-running `git cat-file --batch`, so that an object
// costs microseconds instead of a process. Thread-safe.
class GitObjects {
 public:
  static absl::StatusOr<std::unique_ptr<GitObjects>> Open(const GitRepository& repository);
  ~GitObjects();
  GitObjects(const GitObjects&) = delete;
  GitObjects& operator=(const GitObjects&) = delete;

  struct Object {
    std::string id;
    std::string type;  // commit, tree, blob
    std::string content;
  };
  // `name` is an id or another object name of git, such as "COMMIT:path" or "COMMIT^{tree}".
  // nullopt when the repository has no such object.
  absl::StatusOr<std::optional<Object>> Read(absl::string_view name);

  // Files, links and submodules below the tree `id`, sorted by path. Caches subtrees, because
  // neighbouring commits share most of them. NotFound when a tree is missing.
  absl::StatusOr<std::vector<GitEntry>> Walk(const std::string& id);

 private:
  GitObjects(PipedProcess process, std::filesystem::path folder)
      : process_(std::move(process)), folder_(std::move(folder)) {}

  using Entries = std::shared_ptr<const std::vector<GitEntry>>;
  absl::StatusOr<std::optional<Object>> ReadLocked(absl::string_view name);
  absl::StatusOr<Entries> WalkLocked(const std::string& id);
  absl::StatusOr<std::string> ReadLine();
  absl::Status ReadBytes(size_t count, std::string& bytes);
  absl::Status Fill();
  absl::Status Broken() const;

  std::mutex mutex_;
  PipedProcess process_;
  const std::filesystem::path folder_;
  std::string buffer_;  // read from git and not consumed yet
  std::map<std::string, Entries> trees_;
};

// The entries of one tree object, in git's order. `hash_size` is the length of an object id in
// bytes (20 or 32).
std::vector<GitEntry> ParseTree(absl::string_view content, size_t hash_size);

}  // namespace bkm

#endif  // HARNESS_SOURCE_GIT_OBJECTS_H_
