// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/torture/journal.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/files.h"

namespace bkm {
namespace fs = std::filesystem;

std::vector<JournalStep> ParseJournal(absl::string_view text) {
  static const auto& kKinds = *new std::map<std::string, JournalStep::Kind>{
      {"write", JournalStep::Kind::kWrite},        {"sync", JournalStep::Kind::kSync},
      {"rename", JournalStep::Kind::kRename},      {"sync-folder", JournalStep::Kind::kSyncFolder},
      {"sync-tree", JournalStep::Kind::kSyncTree}, {"remove", JournalStep::Kind::kRemove}};
  std::vector<JournalStep> steps;
  for (size_t end; (end = text.find('\n')) != text.npos;) {
    const std::vector<std::string> words = absl::StrSplit(text.substr(0, end), '\t');
    size_t size = 0;
    if (words.size() != 4 || !absl::SimpleAtoi(words[3], &size)) break;
    const auto kind = kKinds.find(words[0]);
    text.remove_prefix(end + 1);
    if (kind == kKinds.end() || text.size() < size + 1) break;
    steps.push_back({kind->second, words[1], words[2], std::string(text.substr(0, size))});
    text.remove_prefix(size + 1);
  }
  return steps;
}

bool CutDisk::IsBelow(const fs::path& path) const { return IsAtOrBelow(path, root_); }

size_t CutDisk::FileAt(const fs::path& path) {
  const auto known = names_.find(path);
  if (known != names_.end()) return known->second;
  files_.emplace_back();
  return names_[path] = files_.size() - 1;
}

std::vector<fs::path> CutDisk::UnsafeFolders(const fs::path& path) const {
  std::vector<fs::path> unsafe;
  for (fs::path folder = path.parent_path(); IsBelow(folder) && folder != root_;
       folder = folder.parent_path()) {
    if (!synced_folders_.contains(folder)) unsafe.push_back(folder);
  }
  return unsafe;
}

void CutDisk::AddSafe(const fs::path& path, std::string content) {
  for (fs::path folder = path.parent_path(); IsBelow(folder); folder = folder.parent_path())
    synced_folders_.insert(folder);
  files_.push_back({content, content, true});
  names_[path] = synced_names_[path] = files_.size() - 1;
}

void CutDisk::Apply(const JournalStep& step) {
  if (!IsBelow(step.path) && !IsAtOrBelow(root_, step.path)) return;
  switch (step.kind) {
    case JournalStep::Kind::kWrite: {
      // A new file each time: the program writes temporary files only.
      files_.push_back({.content = step.content});
      names_[step.path] = files_.size() - 1;
      break;
    }
    case JournalStep::Kind::kSync: {
      File& file = files_[FileAt(step.path)];
      file = {step.content, step.content, true};
      break;
    }
    case JournalStep::Kind::kRename: {
      const size_t file = FileAt(step.path);
      names_.erase(step.path);
      names_[step.to] = file;
      break;
    }
    case JournalStep::Kind::kSyncFolder: {
      const auto directly = [&](const fs::path& path) { return path.parent_path() == step.path; };
      std::erase_if(synced_names_, [&](const auto& entry) {
        // A folder that was removed takes what it held along.
        const fs::path& path = entry.first;
        if (directly(path)) return !names_.contains(path);
        if (!IsAtOrBelow(path, step.path)) return false;
        const fs::path child = step.path / *path.lexically_relative(step.path).begin();
        for (const auto& [name, file] : names_) {
          if (IsAtOrBelow(name, child)) return false;
        }
        return true;
      });
      for (const auto& [path, file] : names_) {
        if (directly(path)) {
          synced_names_[path] = file;
        } else if (IsAtOrBelow(path, step.path)) {
          synced_folders_.insert(step.path / *path.lexically_relative(step.path).begin());
        }
      }
      break;
    }
    case JournalStep::Kind::kSyncTree:
      for (const auto& [path, file] : names_) {
        files_[file] = {files_[file].content, files_[file].content, true};
        synced_names_[path] = file;
        for (const fs::path& folder : UnsafeFolders(path)) synced_folders_.insert(folder);
      }
      break;
    case JournalStep::Kind::kRemove:
      std::erase_if(names_, [&](const auto& entry) { return IsAtOrBelow(entry.first, step.path); });
      break;
  }
}

std::map<fs::path, std::string> CutDisk::Safe() const {
  std::map<fs::path, std::string> safe;
  for (const auto& [path, file] : synced_names_) {
    const auto now = names_.find(path);
    if (now != names_.end() && now->second == file && files_[file].is_synced &&
        UnsafeFolders(path).empty())
      safe[path] = files_[file].synced;
  }
  return safe;
}

std::map<fs::path, std::string> CutDisk::Cut(std::mt19937_64& random) const {
  const auto toss = [&](int sides) { return static_cast<int>(random() % sides); };
  // The content of each file is decided once: it may have several names.
  std::map<size_t, std::string> contents;
  const auto content_of = [&](size_t number) {
    const auto known = contents.find(number);
    if (known != contents.end()) return known->second;
    const File& file = files_[number];
    std::string content = file.is_synced ? file.synced : file.content;
    if (!file.is_synced) {
      switch (toss(4)) {
        case 0:
          break;
        case 1:
          content.clear();
          break;
        case 2:
          content.resize(content.empty() ? 0 : random() % content.size());
          break;
        default:  // the size reached the disk, a block did not
          for (size_t i = content.size() / 2; i < content.size(); ++i) content[i] = '\0';
      }
    }
    return contents[number] = content;
  };
  std::set<fs::path> paths;
  for (const auto& [path, file] : names_) paths.insert(path);
  for (const auto& [path, file] : synced_names_) paths.insert(path);
  std::map<fs::path, bool> folder_is_there;
  const auto is_reachable = [&](const fs::path& path) {
    for (const fs::path& folder : UnsafeFolders(path)) {
      if (!folder_is_there.contains(folder)) folder_is_there[folder] = toss(2) == 0;
      if (!folder_is_there[folder]) return false;
    }
    return true;
  };
  std::map<fs::path, std::string> left;
  for (const fs::path& path : paths) {
    if (!is_reachable(path)) continue;
    const auto now = names_.find(path), old = synced_names_.find(path);
    const bool has_now = now != names_.end(), has_old = old != synced_names_.end();
    const bool same = has_now && has_old && now->second == old->second;
    const bool takes_new = same || toss(2) == 0;
    if (takes_new ? has_now : has_old) left[path] = content_of((takes_new ? now : old)->second);
  }
  return left;
}

}  // namespace bkm
