// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/git_objects.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

constexpr absl::string_view kFolder = "40000";

}  // namespace

std::vector<GitEntry> ParseTree(absl::string_view content, size_t hash_size) {
  std::vector<GitEntry> entries;
  while (!content.empty()) {  // MODE SP NAME NUL HASH
    const size_t space = content.find(' ');
    const size_t end = content.find('\0');
    if (space == content.npos || end == content.npos || end < space ||
        content.size() < end + 1 + hash_size)
      break;
    entries.push_back({std::string(content.substr(0, space)),
                       absl::BytesToHexString(content.substr(end + 1, hash_size)),
                       std::string(content.substr(space + 1, end - space - 1))});
    content.remove_prefix(end + 1 + hash_size);
  }
  return entries;
}

absl::StatusOr<std::unique_ptr<GitObjects>> GitObjects::Open(const GitRepository& repository) {
  const Command command =
      GitCommand({"--git-dir", repository.folder().string(), "cat-file", "--batch"});
  ASSIGN_OR_RETURN(PipedProcess process, StartPiped(command, "/dev/null"));
  return std::unique_ptr<GitObjects>(new GitObjects(std::move(process), repository.folder()));
}

GitObjects::~GitObjects() {
  process_.to_child.Close();  // git exits at the end of its input
  ::waitpid(process_.pid, nullptr, 0);
}

absl::Status GitObjects::Broken() const {
  return absl::UnavailableError(absl::StrCat("git cat-file ended while it read ", folder_.string(),
                                             " (check the repository: git -C ", folder_.string(),
                                             " fsck)"));
}

absl::Status GitObjects::Fill() {
  char bytes[65536];
  ssize_t count = 0;
  do {
    count = ::read(process_.from_child.get(), bytes, sizeof bytes);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return Broken();
  buffer_.append(bytes, static_cast<size_t>(count));
  return absl::OkStatus();
}

absl::StatusOr<std::string> GitObjects::ReadLine() {
  size_t end = 0;
  while ((end = buffer_.find('\n')) == std::string::npos) RETURN_IF_ERROR(Fill());
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  return line;
}

absl::Status GitObjects::ReadBytes(size_t count, std::string& bytes) {
  while (buffer_.size() < count) RETURN_IF_ERROR(Fill());
  bytes = buffer_.substr(0, count);
  buffer_.erase(0, count);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<GitObjects::Object>> GitObjects::ReadLocked(absl::string_view name) {
  if (!WriteAll(process_.to_child.get(), absl::StrCat(name, "\n"))) return Broken();
  // ID SP TYPE SP SIZE LF CONTENT LF, or NAME SP missing LF
  ASSIGN_OR_RETURN(const std::string line, ReadLine());
  const std::vector<std::string> header = absl::StrSplit(line, ' ');
  size_t size = 0;
  if (header.size() != 3 || !absl::SimpleAtoi(header[2], &size)) return std::optional<Object>();
  Object object{.id = header[0], .type = header[1]};
  RETURN_IF_ERROR(ReadBytes(size, object.content));
  std::string newline;
  RETURN_IF_ERROR(ReadBytes(1, newline));
  return std::optional<Object>(std::move(object));
}

absl::StatusOr<std::optional<GitObjects::Object>> GitObjects::Read(absl::string_view name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ReadLocked(name);
}

absl::StatusOr<GitObjects::Entries> GitObjects::WalkLocked(const std::string& id) {
  const auto known = trees_.find(id);
  if (known != trees_.end()) return known->second;
  ASSIGN_OR_RETURN(const std::optional<Object> tree, ReadLocked(id));
  if (!tree || tree->type != "tree") {
    return absl::NotFoundError(absl::StrCat(folder_.string(), " lacks the folder with the id ", id,
                                            ": fetch it, or use a complete clone"));
  }
  std::vector<GitEntry> entries;
  for (GitEntry& entry : ParseTree(tree->content, tree->id.size() / 2)) {
    if (entry.mode != kFolder) {
      entries.push_back(std::move(entry));
      continue;
    }
    ASSIGN_OR_RETURN(const Entries below, WalkLocked(entry.id));
    for (const GitEntry& file : *below)
      entries.push_back({file.mode, file.id, absl::StrCat(entry.path, "/", file.path)});
  }
  return trees_[id] = std::make_shared<const std::vector<GitEntry>>(std::move(entries));
}

absl::StatusOr<std::vector<GitEntry>> GitObjects::Walk(const std::string& id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ASSIGN_OR_RETURN(const Entries entries, WalkLocked(id));
  return *entries;
}

}  // namespace bkm
