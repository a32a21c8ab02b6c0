// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_GIT_OBJECTS_H_
#define HARNESS_SOURCE_GIT_OBJECTS_H_

#include <cstdint>
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

// A line with which git cat-file answers: "ID TYPE SIZE"; nullopt for any other, such as "ID
// missing".
struct GitObjectInfo {
  std::string id;
  std::string type;
  uint64_t size = 0;
  bool operator==(const GitObjectInfo&) const = default;
};
GitObjectInfo ParseObjectInfo(absl::string_view line);

// The tree that a commit's content names; nullopt when it names none.
std::optional<std::string> TreeNamedBy(absl::string_view commit);

// Reads a repository's objects through one long-running `git cat-file --batch-command`, so that an
// object costs microseconds instead of a process. Objects are untrusted: they are parsed here and
// bounded. Thread-safe.
class GitObjects {
 public:
  // `environment` may name other object folders.
  static absl::StatusOr<std::unique_ptr<GitObjects>> Open(
      const GitRepository& repository, std::map<std::string, std::string> environment = {});
  ~GitObjects();
  GitObjects(const GitObjects&) = delete;
  GitObjects& operator=(const GitObjects&) = delete;

  struct Object {
    std::string id;
    std::string type;  // commit, tree, blob
    std::string content;
  };
  // nullopt when the repository has no such object. An object that is too large is a fault of its
  // subject.
  absl::StatusOr<std::optional<Object>> Read(absl::string_view id);

  // The tree of a commit. Never let git look up a path: it ends at the first malformed tree.
  absl::StatusOr<std::string> TreeOf(absl::string_view commit);
  // The entries of the tree `id`, in git's order.
  absl::StatusOr<std::vector<GitEntry>> Entries(const std::string& id);
  // The entry at `path` below the tree `id`, with `path`; nullopt when there is none.
  absl::StatusOr<std::optional<GitEntry>> Find(const std::string& id, absl::string_view path);

  // Files, links and submodules below the tree `id`, sorted by path. Caches subtrees, because
  // neighbouring commits share most of them. A tree that breaks the rules, or that is missing
  // (NotFound), is a fault of its subject.
  absl::StatusOr<std::vector<GitEntry>> Walk(const std::string& id);

 private:
  GitObjects(std::filesystem::path folder, std::map<std::string, std::string> environment)
      : folder_(std::move(folder)), environment_(std::move(environment)) {}

  // What lies below a tree.
  struct Walked {
    std::vector<GitEntry> entries;
    int depth = 0;    // of the deepest folder
    size_t path = 0;  // bytes of the longest path
  };
  using SharedWalk = std::shared_ptr<const absl::StatusOr<Walked>>;
  absl::StatusOr<std::optional<Object>> ReadLocked(absl::string_view id);
  absl::StatusOr<Object> ReadTreeLocked(const std::string& id);
  SharedWalk WalkLocked(const std::string& id, int depth);
  absl::StatusOr<Walked> WalkBelow(const std::string& id, int depth);
  absl::StatusOr<GitObjectInfo> Ask(absl::string_view question);
  absl::StatusOr<std::string> ReadLine();
  absl::Status ReadBytes(size_t count, std::string& bytes);
  absl::Status Fill();
  absl::Status Start();
  void Stop();
  absl::Status Broken();

  std::mutex mutex_;
  PipedProcess process_;
  const std::filesystem::path folder_;
  const std::map<std::string, std::string> environment_;
  std::string buffer_;  // read from git and not consumed yet
  std::map<std::string, SharedWalk> trees_;
};

// The entries of one tree object, in git's order. `hash_size` is the length of an object id in
// bytes (20 or 32). What git would not check out is a fault of the subject: truncated content,
// unknown modes, forbidden names (CheckName), entries out of order and names that occur twice.
absl::StatusOr<std::vector<GitEntry>> ParseTree(absl::string_view content, size_t hash_size);

}  // namespace bkm

#endif  // HARNESS_SOURCE_GIT_OBJECTS_H_
