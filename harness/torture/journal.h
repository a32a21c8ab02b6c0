// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_TORTURE_JOURNAL_H_
#define HARNESS_TORTURE_JOURNAL_H_

#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bkm {

// One recorded step of writing (harness/base/disturbance.h).
struct JournalStep {
  enum class Kind { kWrite, kSync, kRename, kSyncFolder, kSyncTree, kRemove };
  Kind kind;
  std::filesystem::path path;
  std::filesystem::path to;  // of a rename
  std::string content;       // of a write; of a sync: the file's content then
};

// Parses a journal. Its end may be torn, because the process that wrote it was killed.
std::vector<JournalStep> ParseJournal(absl::string_view text);

// A disk as a power cut sees it: what was written, and what of that was synced. Knows files and
// names below one folder.
class CutDisk {
 public:
  explicit CutDisk(std::filesystem::path root) : root_(std::move(root)) {}

  // Takes a file that was there, and safe, before the first step.
  void AddSafe(const std::filesystem::path& path, std::string content);
  void Apply(const JournalStep& step);

  // The files that are safe: their names and contents were synced.
  std::map<std::filesystem::path, std::string> Safe() const;
  // What a power cut leaves: the safe files, and of everything else, for each name and each content
  // on its own, the old or the new state, or a torn or empty file.
  std::map<std::filesystem::path, std::string> Cut(std::mt19937_64& random) const;

 private:
  struct File {
    std::string content;
    std::string synced;  // valid if is_synced
    bool is_synced = false;
  };
  // Numbers of files by full path.
  using Names = std::map<std::filesystem::path, size_t>;

  bool IsBelow(const std::filesystem::path& path) const;
  // The folders between the root and `path` whose own names were not synced.
  std::vector<std::filesystem::path> UnsafeFolders(const std::filesystem::path& path) const;
  size_t FileAt(const std::filesystem::path& path);

  const std::filesystem::path root_;
  std::vector<File> files_;
  Names names_;         // as the processes saw them
  Names synced_names_;  // as they are on the disk
  std::set<std::filesystem::path> synced_folders_;
};

}  // namespace bkm

#endif  // HARNESS_TORTURE_JOURNAL_H_
