// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SOURCE_GIT_FIXTURE_H_
#define HARNESS_SOURCE_GIT_FIXTURE_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/strip.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/source/git_repository.h"

namespace bkm {

// A small git repository for tests. Times are fixed, so commit ids are too.
class GitFixture {
 public:
  explicit GitFixture(std::filesystem::path folder) : folder_(std::move(folder)) {
    Git({"init", "--quiet", "--initial-branch=main", folder_.string()});
    Git({"config", "uploadpack.allowFilter", "true"});
    Git({"config", "uploadpack.allowAnySHA1InWant", "true"});
  }

  void Write(const std::string& path, const std::string& content) {
    EXPECT_TRUE(WriteFile(folder_ / path, content).ok());
  }
  // Commits everything in the folder. Returns the commit's 40 digits.
  std::string Commit(const std::string& title, const std::string& date) {
    Git({"add", "--all"});
    Git({"commit", "--quiet", "--allow-empty", "--message", title}, date + "T12:00:00Z");
    return Head();
  }
  // Checks out a new branch that starts at `start`.
  void Branch(const std::string& name, const std::string& start) {
    Git({"checkout", "--quiet", "-B", name, start});
  }
  void Checkout(const std::string& branch) { Git({"checkout", "--quiet", branch}); }
  // Merges `branch` into the current one. Returns the merge commit's 40 digits.
  std::string Merge(const std::string& branch, const std::string& title, const std::string& date) {
    Git({"merge", "--quiet", "--no-ff", "--strategy-option=theirs", "--message", title, branch},
        date + "T12:00:00Z");
    return Head();
  }
  std::string Head() { return std::string(absl::StripSuffix(Git({"rev-parse", "HEAD"}), "\n")); }
  // Writes an object that git itself would refuse to make. Returns its id.
  std::string WriteRaw(const std::string& type, const std::string& content) {
    return std::string(absl::StripSuffix(
        Git({"hash-object", "-t", type, "-w", "--literally", "--stdin"}, "", content), "\n"));
  }
  // One entry of a raw tree.
  static std::string Entry(const std::string& mode, const std::string& name,
                           const std::string& id) {
    return mode + " " + name + std::string(1, '\0') + absl::HexStringToBytes(id);
  }
  // A commit on the branch main with this tree at its root. Returns the commit's 40 digits.
  std::string CommitRaw(const std::string& tree) {
    const std::string commit = WriteRaw("commit", "tree " + tree +
                                                      "\nauthor T <t@example.org> 1772712000 +0000"
                                                      "\ncommitter T <t@example.org> 1772712000 "
                                                      "+0000\n\nA hostile commit\n");
    Git({"update-ref", "refs/heads/main", commit});
    return commit;
  }
  std::string Git(std::vector<std::string> arguments, const std::string& date = "",
                  const std::string& input = "") {
    arguments.insert(arguments.begin(), {"-C", folder_.string(), "-c", "user.name=T", "-c",
                                         "user.email=t@example.org", "-c", "commit.gpgsign=false"});
    if (!std::filesystem::exists(folder_))
      arguments.erase(arguments.begin(), arguments.begin() + 2);
    Command command = GitCommand(arguments);
    command.input = input;
    if (!date.empty()) {
      command.set_env["GIT_COMMITTER_DATE"] = date;
      command.set_env["GIT_AUTHOR_DATE"] = date;
    }
    const absl::StatusOr<std::string> output = RunForOutput(command);
    EXPECT_TRUE(output.ok()) << output.status();
    return output.value_or("");
  }
  const std::filesystem::path& folder() const { return folder_; }
  // The bare repository, for use as a mirror.
  std::filesystem::path git_dir() const { return folder_ / ".git"; }

 private:
  std::filesystem::path folder_;
};

}  // namespace bkm

#endif  // HARNESS_SOURCE_GIT_FIXTURE_H_
