// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/tree_views.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/link_tree.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

constexpr absl::string_view kLink = "120000";
constexpr absl::string_view kSubmodule = "160000";

// A mirror may lack large files: documents and archives of data. No import reads these, so a tree
// without them is still whole.
bool IsDocument(absl::string_view path) {
  for (absl::string_view suffix : {".md", ".rst", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".pdf",
                                   ".ipynb", ".mp4", ".webp", ".tar"}) {
    if (absl::EndsWith(path, suffix)) return true;
  }
  return false;
}

bool IsPython(const GitEntry& entry) {
  return entry.mode != kLink && absl::EndsWith(entry.path, ".py");
}

absl::Status SystemError(absl::string_view doing, const fs::path& path) {
  return absl::UnavailableError(
      absl::StrCat("cannot ", doing, " ", path.string(), ": ", std::strerror(errno)));
}

// Creates the folders of a tree, each once.
class Folders {
 public:
  explicit Folders(const fs::path& root) : root_(root.string()) {}
  absl::Status Make(absl::string_view relative) {
    if (relative.empty() || !made_.insert(std::string(relative)).second) return absl::OkStatus();
    const size_t slash = relative.rfind('/');
    RETURN_IF_ERROR(Make(slash == relative.npos ? "" : relative.substr(0, slash)));
    const std::string path = absl::StrCat(root_, "/", relative);
    if (::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return absl::OkStatus();
    return SystemError("create", path);
  }

 private:
  const std::string root_;
  std::set<std::string> made_;
};

}  // namespace

// The mode is the file's, and a hard link shares it.
fs::path TreeViews::FileOf(const GitEntry& entry) const {
  return blobs_ / entry.id.substr(0, 2) /
         absl::StrCat(entry.id, entry.mode == "100755" ? ".executable" : "");
}

absl::StatusOr<std::string> TreeViews::CacheTag() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (tag_.empty()) {
    ASSIGN_OR_RETURN(tag_, reader_.CompileFiles({}));
  }
  return tag_;
}

std::vector<GitEntry> TreeViews::Unknown(const std::vector<GitEntry>& entries) const {
  std::vector<GitEntry> unknown;
  for (const GitEntry& entry : entries) {
    if (entry.mode != kSubmodule && ::access(FileOf(entry).c_str(), F_OK) != 0)
      unknown.push_back(entry);
  }
  return unknown;
}

absl::StatusOr<std::vector<std::string>> TreeViews::Fetch(
    const GitRepository& repository, GitObjects& objects,
    const std::vector<GitEntry>& unknown) const {
  std::vector<std::string> missing;
  for (const GitEntry& entry : unknown) {
    ASSIGN_OR_RETURN(const std::optional<GitObjects::Object> blob, objects.Read(entry.id));
    if (blob) {
      const fs::path file = FileOf(entry);
      RETURN_IF_ERROR(WriteFile(file, blob->content));
      if (::chmod(file.c_str(), entry.mode == "100755" ? 0555 : 0444) != 0)
        return SystemError("protect", file);
    } else if (IsDocument(entry.path)) {
      missing.push_back(entry.id);
    } else {
      return absl::NotFoundError(absl::StrCat(repository.folder().string(), " lacks the file ",
                                              entry.path, " (object ", entry.id,
                                              "): fetch it, or use a complete clone"));
    }
  }
  return missing;
}

absl::Status TreeViews::Compile(const std::vector<GitEntry>& entries, const std::string& package,
                                const std::string& tag) const {
  std::vector<std::pair<fs::path, fs::path>> wanted;
  std::set<std::string> asked;
  for (const GitEntry& entry : entries) {
    if (!IsPython(entry) || !absl::StartsWith(entry.path, package + "/")) continue;
    const fs::path file = FileOf(entry);
    const fs::path compiled = absl::StrCat(file.string(), ".", tag, ".pyc");
    if (::access(compiled.c_str(), F_OK) != 0 && asked.insert(compiled).second)
      wanted.emplace_back(file, compiled);
  }
  return wanted.empty() ? absl::OkStatus() : reader_.CompileFiles(wanted).status();
}

std::string TreeViews::CompiledFileOf(const GitEntry& entry, const std::string& tag) {
  std::string compiled = absl::StrCat(FileOf(entry).string(), ".", tag, ".pyc");
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [known, is_new] = compiled_.emplace(compiled, false);
  if (is_new) {
    struct stat info = {};
    known->second = ::stat(compiled.c_str(), &info) == 0 && info.st_size > 0;
  }
  return known->second ? compiled : "";
}

absl::StatusOr<std::vector<GitEntry>> TreeViews::Make(
    const GitRepository& repository, GitObjects& objects, const std::string& commit,
    const std::vector<GitEntry>& entries, const std::string& package, const fs::path& tree) {
  std::set<std::string> missing;
  if (const std::vector<GitEntry> unknown = Unknown(entries); !unknown.empty()) {
    std::vector<std::string> paths;
    for (const GitEntry& entry : unknown) paths.push_back(entry.path);
    RETURN_IF_ERROR(repository.Prefetch({commit}, paths));
    ASSIGN_OR_RETURN(const std::vector<std::string> ids, Fetch(repository, objects, unknown));
    missing.insert(ids.begin(), ids.end());
  }
  ASSIGN_OR_RETURN(const std::string tag, CacheTag());
  RETURN_IF_ERROR(Compile(entries, package, tag));
  Folders folders(tree);
  std::vector<GitEntry> made;
  for (const GitEntry& entry : entries) {
    if (entry.mode == kSubmodule || missing.contains(entry.id)) continue;
    const size_t slash = entry.path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : entry.path.substr(0, slash);
    RETURN_IF_ERROR(folders.Make(folder));
    const fs::path file = FileOf(entry), place = tree / entry.path;
    made.push_back(entry);
    if (entry.mode == kLink) {
      ASSIGN_OR_RETURN(const std::string target, ReadFile(file));
      if (::symlink(target.c_str(), place.c_str()) != 0) return SystemError("link", place);
      continue;
    }
    RETURN_IF_ERROR(LinkFile(file, place));
    if (!IsPython(entry) || !absl::StartsWith(entry.path, package + "/")) continue;
    const std::string compiled = CompiledFileOf(entry, tag);
    if (compiled.empty()) continue;
    const std::string cache = folder + "/__pycache__";
    RETURN_IF_ERROR(folders.Make(cache));
    RETURN_IF_ERROR(LinkFile(
        compiled, tree / absl::StrCat(cache, "/", place.stem().string(), ".", tag, ".pyc")));
  }
  return made;
}

}  // namespace bkm
