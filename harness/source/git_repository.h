// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_GIT_REPOSITORY_H_
#define HARNESS_SOURCE_GIT_REPOSITORY_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/subprocess.h"

namespace bkm {

struct Commit {
  std::string id;     // 40 hex digits
  std::string date;   // YYYY-MM-DD of the committer, UTC
  std::string title;  // first line of the message
};

struct GitEntry {
  std::string mode;  // 100644, 100755, 120000 (link), 040000 (folder), 160000 (submodule)
  std::string id;
  std::string path;  // relative to the repository's root
};

// A repository on disk, read through the git command line. Its history may be shallow and large
// files may be missing.
class GitRepository {
 public:
  explicit GitRepository(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // The id of the commit that `revision` names; nullopt when there is none in this repository,
  // InvalidArgument when a short id is ambiguous.
  absl::StatusOr<std::optional<std::string>> CommitId(absl::string_view revision) const;
  absl::StatusOr<Commit> Describe(absl::string_view commit) const;

  // The id of the tree or file at `path` ("" is the root); nullopt when there is none.
  absl::StatusOr<std::optional<std::string>> ObjectId(absl::string_view commit,
                                                      absl::string_view path) const;
  // In a partial clone, fetches the missing contents of `paths` in one request.
  absl::Status Prefetch(const std::vector<std::string>& commits,
                        const std::vector<std::string>& paths) const;

  // Tags, newest first.
  absl::StatusOr<std::vector<std::string>> Tags() const;

  // Runs git on this repository, without environment variables that would redirect it.
  absl::StatusOr<ProcessResult> Run(const std::vector<std::string>& arguments,
                                    std::string input = "") const;
  // Like Run, for a command that fails only when the repository is damaged. Returns its stdout.
  absl::StatusOr<std::string> Output(const std::vector<std::string>& arguments,
                                     std::string input = "") const;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

// A git command with English messages, without prompts and without environment variables that would
// redirect git.
Command GitCommand(std::vector<std::string> arguments);

// The last error that git printed, without "fatal: ".
std::string GitComplaint(const ProcessResult& result);

}  // namespace bkm

#endif  // HARNESS_SOURCE_GIT_REPOSITORY_H_
