// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/git_objects.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/status_macros.h"
#include "harness/source/subject_fault.h"
#include "harness/source/tree_rules.h"

namespace bkm {
namespace {

constexpr absl::string_view kFolder = "40000";
constexpr size_t kLargestTree = size_t{16} << 20;  // bytes of one tree or commit object
constexpr TreeBounds kBounds;
// A larger tree is walked again, so that chains of huge trees cannot fill the memory.
constexpr size_t kMostCached = 20'000;

// A file that git also knows as 100664, from its first versions, and folders that other programs
// wrote as 040000.
absl::string_view CanonicalMode(absl::string_view mode) {
  if (mode == "100664") return "100644";
  return mode == "040000" ? kFolder : mode;
}

bool IsMode(absl::string_view mode) {
  return mode == "100644" || mode == "100755" || mode == "120000" || mode == kFolder ||
         mode == "160000";
}

// Git sorts a folder as if its name ended in a slash.
std::string SortName(const GitEntry& entry) {
  return entry.mode == kFolder ? absl::StrCat(entry.path, "/") : entry.path;
}

absl::Status CheckOrder(const std::vector<GitEntry>& entries) {
  std::set<absl::string_view> names;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!names.insert(entries[i].path).second) {
      return TreeNotAllowed(absl::StrCat("the tree has two entries with the name '",
                                         absl::CHexEscape(entries[i].path), "'"));
    }
    if (i > 0 && SortName(entries[i]) < SortName(entries[i - 1])) {
      return TreeNotAllowed(absl::StrCat("the tree has an entry out of order: '",
                                         absl::CHexEscape(entries[i].path), "'"));
    }
  }
  return absl::OkStatus();
}

bool IsId(absl::string_view text) {
  return (text.size() == 40 || text.size() == 64) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

GitObjectInfo ParseObjectInfo(absl::string_view line) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  uint64_t size = 0;
  if (words.size() != 3 || !absl::SimpleAtoi(words[2], &size)) return {};
  return {.id = words[0], .type = words[1], .size = size};
}

std::optional<std::string> TreeNamedBy(absl::string_view commit) {
  if (!absl::ConsumePrefix(&commit, "tree ")) return std::nullopt;
  const absl::string_view id = commit.substr(0, commit.find('\n'));
  return IsId(id) ? std::optional<std::string>(id) : std::nullopt;
}

absl::StatusOr<std::vector<GitEntry>> ParseTree(absl::string_view content, size_t hash_size) {
  std::vector<GitEntry> entries;
  while (!content.empty()) {  // MODE SP NAME NUL HASH
    const size_t end = content.find('\0');
    const size_t space = content.substr(0, end).find(' ');
    if (end == content.npos || space == content.npos || content.size() - end - 1 < hash_size)
      return TreeNotAllowed("the tree has an entry that is cut off");
    const absl::string_view mode = CanonicalMode(content.substr(0, space));
    const absl::string_view name = content.substr(space + 1, end - space - 1);
    RETURN_IF_ERROR(CheckName(name));
    if (!IsMode(mode)) {
      return TreeNotAllowed(absl::StrCat("the tree has an entry of the unknown mode '",
                                         absl::CHexEscape(mode.substr(0, 16)), "'"));
    }
    entries.push_back({std::string(mode),
                       absl::BytesToHexString(content.substr(end + 1, hash_size)),
                       std::string(name)});
    if (entries.size() > kBounds.entries) {
      return TreeNotAllowed(absl::StrCat("the tree has more than ", kBounds.entries, " entries"));
    }
    content.remove_prefix(end + 1 + hash_size);
  }
  RETURN_IF_ERROR(CheckOrder(entries));
  return entries;
}

absl::StatusOr<std::unique_ptr<GitObjects>> GitObjects::Open(
    const GitRepository& repository, std::map<std::string, std::string> environment) {
  std::unique_ptr<GitObjects> objects(new GitObjects(repository.folder(), std::move(environment)));
  RETURN_IF_ERROR(objects->Start());
  return objects;
}

GitObjects::~GitObjects() { Stop(); }

absl::Status GitObjects::Start() {
  Command command = GitCommand({"--git-dir", folder_.string(), "cat-file", "--batch-command"});
  for (const auto& [name, value] : environment_) command.set_env[name] = value;
  std::erase_if(command.unset_env,
                [&](const std::string& name) { return environment_.contains(name); });
  ASSIGN_OR_RETURN(process_, StartPiped(command, "/dev/null"));
  return absl::OkStatus();
}

void GitObjects::Stop() {
  process_.to_child.Close();  // git exits at the end of its input
  process_.from_child.Close();
  if (process_.pid > 0) ::waitpid(process_.pid, nullptr, 0);
  process_.pid = -1;
  buffer_.clear();
}

absl::Status GitObjects::Broken() {
  Stop();  // the next question starts git again
  return FaultySubject(EndingKind::kSourceIncomplete,
                       absl::UnavailableError(absl::StrCat(
                           "git cat-file ended while it read ", folder_.string(),
                           " (check the repository: git -C ", folder_.string(), " fsck)")));
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

absl::StatusOr<GitObjectInfo> GitObjects::Ask(absl::string_view question) {
  if (process_.pid < 0) RETURN_IF_ERROR(Start());
  if (!WriteAll(process_.to_child.get(), absl::StrCat(question, "\n"))) return Broken();
  ASSIGN_OR_RETURN(const std::string line, ReadLine());
  return ParseObjectInfo(line);
}

absl::StatusOr<std::optional<GitObjects::Object>> GitObjects::ReadLocked(absl::string_view id) {
  if (!IsId(id)) return absl::InvalidArgumentError(absl::StrCat("'", id, "' is not an object id"));
  // Ask for the size first: git would put a huge object into memory before it writes a byte.
  ASSIGN_OR_RETURN(const GitObjectInfo info, Ask(absl::StrCat("info ", id)));
  if (info.type.empty()) return std::optional<Object>();
  const uint64_t most = info.type == "blob" ? kBounds.file : kLargestTree;
  if (info.size > most) {
    return TreeNotAllowed(absl::StrCat("object ", id, " (", info.type, ") has ", info.size,
                                       " bytes, more than ", most));
  }
  ASSIGN_OR_RETURN(const GitObjectInfo header, Ask(absl::StrCat("contents ", id)));
  if (header != info) return Broken();
  Object object{.id = header.id, .type = header.type};
  RETURN_IF_ERROR(ReadBytes(header.size, object.content));
  std::string newline;
  RETURN_IF_ERROR(ReadBytes(1, newline));
  return std::optional<Object>(std::move(object));
}

absl::StatusOr<std::optional<GitObjects::Object>> GitObjects::Read(absl::string_view id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ReadLocked(id);
}

absl::StatusOr<std::string> GitObjects::TreeOf(absl::string_view commit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ASSIGN_OR_RETURN(const std::optional<Object> object, ReadLocked(commit));
  if (object && object->type == "commit") {
    if (std::optional<std::string> tree = TreeNamedBy(object->content)) return *std::move(tree);
  }
  return TreeNotAllowed(absl::StrCat(commit, " is not a commit that names a tree"));
}

absl::StatusOr<GitObjects::Object> GitObjects::ReadTreeLocked(const std::string& id) {
  ASSIGN_OR_RETURN(std::optional<Object> tree, ReadLocked(id));
  if (!tree) {
    return FaultySubject(
        EndingKind::kSourceIncomplete,
        absl::NotFoundError(absl::StrCat(folder_.string(), " lacks the folder with the id ", id,
                                         ": fetch it, or use a complete clone")));
  }
  if (tree->type != "tree") {
    return TreeNotAllowed(absl::StrCat("a folder of the tree is a ", tree->type, ": ", id));
  }
  return *std::move(tree);
}

absl::StatusOr<std::vector<GitEntry>> GitObjects::Entries(const std::string& id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ASSIGN_OR_RETURN(const Object tree, ReadTreeLocked(id));
  return ParseTree(tree.content, id.size() / 2);
}

absl::StatusOr<std::optional<GitEntry>> GitObjects::Find(const std::string& id,
                                                         absl::string_view path) {
  GitEntry found{.mode = std::string(kFolder), .id = id, .path = std::string(path)};
  for (const absl::string_view name : absl::StrSplit(path, '/')) {
    if (found.mode != kFolder) return std::optional<GitEntry>();
    ASSIGN_OR_RETURN(const std::vector<GitEntry> entries, Entries(found.id));
    const auto entry = std::find_if(entries.begin(), entries.end(), [&](const GitEntry& one) {
      return absl::string_view(one.path) == name;
    });
    if (entry == entries.end()) return std::optional<GitEntry>();
    found.mode = entry->mode;
    found.id = entry->id;
  }
  return std::optional<GitEntry>(std::move(found));
}

absl::StatusOr<GitObjects::Walked> GitObjects::WalkBelow(const std::string& id, int depth) {
  if (depth > kBounds.depth) {
    return TreeNotAllowed(
        absl::StrCat("the tree has a path of more than ", kBounds.depth, " folders"));
  }
  ASSIGN_OR_RETURN(const Object tree, ReadTreeLocked(id));
  ASSIGN_OR_RETURN(std::vector<GitEntry> entries, ParseTree(tree.content, id.size() / 2));
  Walked walked;
  for (GitEntry& entry : entries) {
    RETURN_IF_ERROR(CheckWrittenName(entry.path));
    size_t below_path = 0;
    if (entry.mode == kFolder) {
      const SharedWalk below = WalkLocked(entry.id, depth + 1);
      RETURN_IF_ERROR(below->status());
      // The same folders may lie below many others: count before anything is copied.
      if (walked.entries.size() + (*below)->entries.size() > kBounds.entries) {
        return TreeNotAllowed(absl::StrCat("the tree has more than ", kBounds.entries, " entries"));
      }
      walked.depth = std::max(walked.depth, (*below)->depth + 1);
      below_path = (*below)->path + 1;
      for (const GitEntry& file : (*below)->entries)
        walked.entries.push_back({file.mode, file.id, absl::StrCat(entry.path, "/", file.path)});
    }
    walked.path = std::max(walked.path, entry.path.size() + below_path);
    if (entry.mode != kFolder) walked.entries.push_back(std::move(entry));
    if (walked.path > kBounds.path || walked.depth > kBounds.depth ||
        walked.entries.size() > kBounds.entries) {
      return TreeNotAllowed(absl::StrCat("the tree exceeds ", kBounds.entries, " entries, ",
                                         kBounds.depth, " folders in a path or ", kBounds.path,
                                         " bytes in a path"));
    }
  }
  return walked;
}

GitObjects::SharedWalk GitObjects::WalkLocked(const std::string& id, int depth) {
  const auto known = trees_.find(id);
  if (known != trees_.end()) return known->second;
  auto walked = std::make_shared<const absl::StatusOr<Walked>>(WalkBelow(id, depth));
  // An error may depend on what lies above this tree, and a missing tree may be fetched later.
  if (walked->ok() && (*walked)->entries.size() <= kMostCached) trees_[id] = walked;
  return walked;
}

absl::StatusOr<std::vector<GitEntry>> GitObjects::Walk(const std::string& id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const SharedWalk walked = WalkLocked(id, 0);
  RETURN_IF_ERROR(walked->status());
  return (*walked)->entries;
}

}  // namespace bkm
