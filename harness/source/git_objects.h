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

// Reads a repository's objects through one `git cat-file --batch` that stays open: an object costs
// microseconds, not a process. Thread-safe.
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
  // `name` is an id, or anything else that git takes, such as "COMMIT:path" or "COMMIT^{tree}".
  // nullopt when the repository lacks it.
  absl::StatusOr<std::optional<Object>> Read(absl::string_view name);

  // Files, links and submodules below the tree `id`, sorted by path. Subtrees that were read before
  // are remembered: neighbouring commits share most of them. NotFound when a tree is missing.
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
  std::string buffer_;  // read from git and not used yet
  std::map<std::string, Entries> trees_;
};

// The entries of one tree object, in git's order; `hash_size` bytes name an object (20 or 32).
std::vector<GitEntry> ParseTree(absl::string_view content, size_t hash_size);

}  // namespace bkm

#endif  // HARNESS_SOURCE_GIT_OBJECTS_H_
