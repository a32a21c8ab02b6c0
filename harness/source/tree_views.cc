// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/tree_views.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "harness/base/descriptor.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/link_tree.h"
#include "harness/base/status_macros.h"
#include "harness/source/subject_fault.h"
#include "harness/source/tree_listing.h"
#include "harness/store/checksums.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

constexpr absl::string_view kLink = "120000";
constexpr absl::string_view kSubmodule = "160000";

// A mirror may lack large files such as documents and data archives. No import reads them, so a
// tree without them is still usable.
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

// The number of files per thread below which another thread does not pay.
constexpr size_t kFewFiles = 64;

// The digest at the end of a kept compiled file. Python ignores what follows its code.
constexpr size_t kSeal = 64;

std::string Sealed(const std::string& compiled) { return absl::StrCat(compiled, Sha256(compiled)); }

bool IsSealed(const std::string& kept) {
  const absl::string_view text = kept;
  return text.size() >= kSeal &&
         text.substr(text.size() - kSeal) == Sha256(text.substr(0, text.size() - kSeal));
}

// Whether `content` is what a git object id names. Repositories with SHA-256 are not checked.
bool IsBlob(const std::string& content, const std::string& id) {
  return id.size() != 40 || BlobId(content) == id;
}

// A path in a tree.
struct Place {
  std::string folder;  // empty: the tree's root
  std::string name;
};

Place PlaceOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return {.folder = "", .name = std::string(path)};
  return {.folder = std::string(path.substr(0, slash)),
          .name = std::string(path.substr(slash + 1))};
}

// Opens the folder `path`, which is absolute or relative to the folder `at`. System calls with
// paths relative to an open folder save walking the path to it.
absl::StatusOr<Descriptor> OpenFolder(int at, const std::string& path) {
  Descriptor folder(::openat(at, path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!folder.valid()) return SystemError("open", path);
  return folder;
}

// The folders that have an entry __pycache__, of whatever kind.
std::set<std::string> FoldersWithCache(const std::vector<GitEntry>& entries) {
  std::set<std::string> folders;
  for (const GitEntry& entry : entries) {
    const std::string path = absl::StrCat("/", entry.path, "/");
    for (size_t at = path.find("/__pycache__/"); at != path.npos;
         at = path.find("/__pycache__/", at + 1))
      folders.insert(at == 0 ? "" : path.substr(1, at - 1));
  }
  return folders;
}

}  // namespace

// Links kept files into one tree and creates the tree's folders.
class TreeViews::Linker {
 public:
  Linker(const fs::path& blobs, const fs::path& tree) : blobs_(blobs), tree_(tree) {}

  absl::Status Open() {
    blobs_folder_ = Descriptor(::open(blobs_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!blobs_folder_.valid()) return SystemError("open", blobs_);
    ASSIGN_OR_RETURN(tree_folder_, OpenFolder(AT_FDCWD, tree_.string()));
    return absl::OkStatus();
  }

  // Links the file `kept`, a path below `blobs`, to `place`. False when nothing is kept at `kept`.
  absl::StatusOr<bool> Link(const std::string& kept, const Place& place) {
    RETURN_IF_ERROR(Enter(place.folder));
    if (::linkat(blobs_folder_.get(), kept.c_str(), folder_.get(), place.name.c_str(), 0) == 0)
      return true;
    if (errno == ENOENT) return false;
    RETURN_IF_ERROR(LinkFile(blobs_ / kept, tree_ / place.folder / place.name));
    return true;
  }
  // Like Link, for compiled Python: links it into the __pycache__ folder of `place`.
  absl::StatusOr<bool> LinkCompiled(const std::string& kept, const Place& place,
                                    absl::string_view tag) {
    RETURN_IF_ERROR(Create(absl::StrCat(place.folder, "/", kBytecodeFolder)));
    const std::string name =
        absl::StrCat(kBytecodeFolder, "/", absl::StripSuffix(place.name, ".py"), ".", tag, ".pyc");
    return Link(kept, {.folder = place.folder, .name = name});
  }
  // Like Link, for a symbolic link whose target is the text of the kept file.
  absl::StatusOr<bool> Symlink(const std::string& kept, const Place& place) {
    if (!SizeOf(kept)) return false;
    RETURN_IF_ERROR(Enter(place.folder));
    ASSIGN_OR_RETURN(std::string target, ReadFile(blobs_ / kept));
    const std::string path =
        place.folder.empty() ? place.name : absl::StrCat(place.folder, "/", place.name);
    RETURN_IF_ERROR(CheckLink(path, target));
    if (LeavesTree(path, target)) target = kDeadTarget;
    if (::symlinkat(target.c_str(), folder_.get(), place.name.c_str()) == 0) return true;
    return SystemError("link", tree_ / place.folder / place.name);
  }
  // The size of a kept file; nullopt when nothing is kept at `kept`.
  std::optional<off_t> SizeOf(const std::string& kept) const {
    struct stat info = {};
    if (::fstatat(blobs_folder_.get(), kept.c_str(), &info, 0) != 0) return std::nullopt;
    return info.st_size;
  }

 private:
  // Creates and opens a folder of the tree. With sorted paths it is mostly the one already open.
  absl::Status Enter(const std::string& folder) {
    if (folder_.valid() && entered_ == folder) return absl::OkStatus();
    RETURN_IF_ERROR(Create(folder));
    ASSIGN_OR_RETURN(folder_, OpenFolder(tree_folder_.get(), folder.empty() ? "." : folder));
    entered_ = folder;
    return absl::OkStatus();
  }
  absl::Status Create(absl::string_view folder) {
    if (folder.empty() || !created_.insert(std::string(folder)).second) return absl::OkStatus();
    const size_t slash = folder.rfind('/');
    RETURN_IF_ERROR(Create(folder.substr(0, slash == folder.npos ? 0 : slash)));
    const bool made = ::mkdirat(tree_folder_.get(), std::string(folder).c_str(), 0755) == 0;
    return made || errno == EEXIST ? absl::OkStatus()
                                   : SystemError("create", tree_ / std::string(folder));
  }

  const fs::path blobs_;
  const fs::path tree_;
  Descriptor blobs_folder_;
  Descriptor tree_folder_;
  Descriptor folder_;
  std::string entered_;  // the path of folder_
  std::set<std::string> created_;
};

// Executable files are kept apart, because all hard links to a file share its mode.
std::string TreeViews::KeptFile(const GitEntry& entry) {
  return absl::StrCat(absl::string_view(entry.id).substr(0, 2), "/", entry.id,
                      entry.mode == "100755" ? ".executable" : "");
}

std::string TreeViews::KeptPython(const GitEntry& entry, const std::string& tag) {
  return absl::StrCat(KeptFile(entry), ".", tag, ".sealed.pyc");
}

bool TreeViews::Verify(const std::string& kept,
                       const std::function<bool(const std::string&)>& sound) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (verified_.contains(kept)) return true;
  }
  const fs::path file = blobs_ / kept;
  const absl::StatusOr<std::string> content = ReadFile(file);
  if (absl::IsNotFound(content.status())) return false;
  const bool is_sound = content.ok() && sound(*content);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_sound) {
    verified_.insert(kept);
    return true;
  }
  // Trees that link to the file notice its damage themselves. Another thread may have moved it.
  if (SetAside(file).ok() && report_)
    report_(absl::StrCat(file.string(), " is damaged: making it again"));
  return false;
}

absl::StatusOr<std::string> TreeViews::CacheTag() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (tag_.empty()) {
    ASSIGN_OR_RETURN(tag_, reader_.CompileFiles({}));
  }
  return tag_;
}

absl::StatusOr<std::set<std::string>> TreeViews::Fetch(const GitRepository& repository,
                                                       GitObjects& objects,
                                                       const std::vector<GitEntry>& unknown) const {
  std::set<std::string> missing;
  TreeMeter meter{TreeBounds()};
  for (const GitEntry& entry : unknown) {
    ASSIGN_OR_RETURN(const std::optional<GitObjects::Object> blob, objects.Read(entry.id));
    if (blob) {
      if (blob->type != "blob") {
        return TreeNotAllowed(
            absl::StrCat("the file ", entry.path, " of the tree is a ", blob->type));
      }
      RETURN_IF_ERROR(meter.CountFile(entry.path, blob->content.size()));
      const fs::path file = blobs_ / KeptFile(entry);
      // A power cut may damage it: its name is the hash of its content.
      RETURN_IF_ERROR(WriteScratchFile(file, blob->content));
      if (::chmod(file.c_str(), entry.mode == "100755" ? 0555 : 0444) != 0)
        return SystemError("protect", file);
    } else if (IsDocument(entry.path)) {
      missing.insert(entry.id);
    } else {
      return FaultySubject(EndingKind::kSourceIncomplete,
                           absl::NotFoundError(absl::StrCat(
                               repository.folder().string(), " lacks the file ", entry.path,
                               " (object ", entry.id, "): fetch it, or use a complete clone")));
    }
  }
  return missing;
}

absl::Status TreeViews::Compile(const std::vector<GitEntry>& entries,
                                const std::string& tag) const {
  std::map<fs::path, fs::path> wanted;  // by compiled file, since entries may have equal content
  for (const GitEntry& entry : entries)
    wanted.emplace(blobs_ / KeptPython(entry, tag), blobs_ / KeptFile(entry));
  // Compiled files become visible with their seal.
  ASSIGN_OR_RETURN(const fs::path made, CreateTempDirectory(blobs_, ".compile-"));
  std::vector<std::pair<fs::path, fs::path>> files;
  size_t number = 0;
  for (const auto& [compiled, file] : wanted) {
    const fs::path target = made / absl::StrCat(number++, ".pyc");
    std::error_code error;
    if (fs::file_size(file, error) > kLargestCompiled || error) {
      RETURN_IF_ERROR(WriteScratchFile(target, ""));
    } else {
      files.emplace_back(file, target);
    }
  }
  if (!reader_.CompileFiles(files).ok()) {
    // One of the files ends Python's compiler. Compile them one by one, and leave that one out.
    for (const auto& file : files) {
      if (!reader_.CompileFiles({file}).ok()) RETURN_IF_ERROR(WriteScratchFile(file.second, ""));
    }
  }
  absl::Status status;
  number = 0;
  for (const auto& [compiled, file] : wanted) {
    if (!status.ok()) break;
    const absl::StatusOr<std::string> code = ReadFile(made / absl::StrCat(number++, ".pyc"));
    status = code.ok() ? WriteScratchFile(compiled, Sealed(*code)) : code.status();
  }
  RemoveTree(made).IgnoreError();
  return status;
}

absl::StatusOr<bool> TreeViews::LinkPython(const GitEntry& entry, const std::string& tag,
                                           Linker& linker) {
  const std::string kept = KeptPython(entry, tag);
  if (!Verify(kept, IsSealed)) return false;
  bool empty = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = empty_.find(kept);
    if (known != empty_.end()) {
      empty = known->second;
    } else {
      const std::optional<off_t> size = linker.SizeOf(kept);
      if (!size) return false;
      empty = empty_[kept] = *size == static_cast<off_t>(kSeal);
    }
  }
  if (empty) return true;
  return linker.LinkCompiled(kept, PlaceOf(entry.path), tag);
}

absl::StatusOr<TreeViews::Rest> TreeViews::Link(std::span<const GitEntry> entries,
                                                const Scope& scope, const fs::path& tree) {
  Linker linker(blobs_, tree);
  RETURN_IF_ERROR(linker.Open());
  const std::string folder = scope.package + "/";
  Rest rest;
  for (const GitEntry& entry : entries) {
    if (entry.mode == kSubmodule) continue;
    const Place place = PlaceOf(entry.path);
    const std::string file = KeptFile(entry);
    bool kept = Verify(file, [&](const std::string& text) { return IsBlob(text, entry.id); });
    if (kept) {
      ASSIGN_OR_RETURN(
          kept, entry.mode == kLink ? linker.Symlink(file, place) : linker.Link(file, place));
    }
    if (!kept) {
      rest.unknown.push_back(entry);
      continue;
    }
    RETURN_IF_ERROR(rest.meter.CountFile(entry.path, linker.SizeOf(file).value_or(0)));
    if (IsPython(entry) && absl::StartsWith(entry.path, folder) &&
        !scope.own_caches.contains(place.folder)) {
      ASSIGN_OR_RETURN(const bool compiled, LinkPython(entry, scope.tag, linker));
      if (!compiled) rest.uncompiled.push_back(entry);
    }
  }
  return rest;
}

absl::StatusOr<TreeViews::Rest> TreeViews::LinkSideBySide(const std::vector<GitEntry>& entries,
                                                          const Scope& scope,
                                                          const fs::path& tree) {
  const size_t parts = std::clamp<size_t>(entries.size() / kFewFiles, 1,
                                          std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::future<absl::StatusOr<Rest>>> linked;
  for (size_t part = 0; part < parts; ++part) {
    const size_t first = entries.size() * part / parts, end = entries.size() * (part + 1) / parts;
    linked.push_back(
        std::async(parts > 1 ? std::launch::async : std::launch::deferred, [&, first, end] {
          return Link(std::span(entries).subspan(first, end - first), scope, tree);
        }));
  }
  Rest all;
  absl::Status status;
  for (auto& part : linked) {
    absl::StatusOr<Rest> rest = part.get();
    if (!rest.ok()) {
      status = rest.status();
      continue;
    }
    status.Update(all.meter.Add(rest->meter));
    all.unknown.insert(all.unknown.end(), rest->unknown.begin(), rest->unknown.end());
    all.uncompiled.insert(all.uncompiled.end(), rest->uncompiled.begin(), rest->uncompiled.end());
  }
  RETURN_IF_ERROR(status);
  return all;
}

absl::StatusOr<std::vector<GitEntry>> TreeViews::Make(
    const GitRepository& repository, GitObjects& objects, const std::string& commit,
    const std::vector<GitEntry>& entries, const std::string& package, const fs::path& tree) {
  RETURN_IF_ERROR(CreateDirectories(blobs_));
  ASSIGN_OR_RETURN(const std::string tag, CacheTag());
  const Scope scope{.package = package, .tag = tag, .own_caches = FoldersWithCache(entries)};
  // Link optimistically, since most files are kept already. Then fetch and compile what is missing.
  ASSIGN_OR_RETURN(Rest rest, LinkSideBySide(entries, scope, tree));
  std::set<std::string> missing;
  if (!rest.unknown.empty()) {
    std::vector<std::string> paths;
    for (const GitEntry& entry : rest.unknown) paths.push_back(entry.path);
    RETURN_IF_ERROR(repository.Prefetch({commit}, paths));
    ASSIGN_OR_RETURN(missing, Fetch(repository, objects, rest.unknown));
    std::erase_if(rest.unknown, [&](const GitEntry& entry) { return missing.contains(entry.id); });
    ASSIGN_OR_RETURN(const Rest fetched, Link(rest.unknown, scope, tree));
    if (!fetched.unknown.empty()) {
      return absl::UnavailableError(absl::StrCat(
          blobs_.string(), ": files were removed while a tree was being made of them: try again"));
    }
    RETURN_IF_ERROR(rest.meter.Add(fetched.meter));
    rest.uncompiled.insert(rest.uncompiled.end(), fetched.uncompiled.begin(),
                           fetched.uncompiled.end());
  }
  if (!rest.uncompiled.empty()) {
    RETURN_IF_ERROR(Compile(rest.uncompiled, tag));
    Linker linker(blobs_, tree);
    RETURN_IF_ERROR(linker.Open());
    for (const GitEntry& entry : rest.uncompiled) {
      RETURN_IF_ERROR(LinkPython(entry, tag, linker).status());
    }
  }
  std::vector<GitEntry> made;
  for (const GitEntry& entry : entries) {
    if (entry.mode != kSubmodule && !missing.contains(entry.id)) made.push_back(entry);
  }
  return made;
}

}  // namespace bkm
