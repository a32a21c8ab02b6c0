// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/tree_view_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/hash.h"
#include "harness/cell/system_error.h"

namespace bkm {
namespace {

// All times of a view: 1980-01-02, which every archive format can hold.
constexpr time_t kTime = 315619200;

std::optional<TreeFiles::Kind> KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return TreeFiles::Kind::kFolder;
  if (S_ISREG(mode)) return TreeFiles::Kind::kFile;
  if (S_ISLNK(mode)) return TreeFiles::Kind::kLink;
  return std::nullopt;
}

// A file name that the import system could take for a module of this name, given its ending: ".py".
bool IsModuleEnding(absl::string_view ending) {
  return ending == ".py" || ending == ".pyc" || absl::EndsWith(ending, ".so");
}

}  // namespace

// The same in every tree that has this path. 0 and 1 mean something to some programs.
ino_t InodeOfPath(const std::string& path) {
  return std::stoull(Sha256(path).substr(0, 15), nullptr, 16) | 2;
}

std::string JoinPath(absl::string_view folder, absl::string_view name) {
  return folder.empty() ? std::string(name) : absl::StrCat(folder, "/", name);
}

absl::StatusOr<TreeFiles> TreeFiles::Open(const std::filesystem::path& tree) {
  Descriptor root(::open(tree.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return SystemError(absl::StrCat("cannot open ", tree.string()));
  return TreeFiles(std::move(root));
}

Descriptor TreeFiles::OpenBelow(const std::string& path, int flags) const {
  open_how how = {};
  how.flags = static_cast<uint64_t>(flags) | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return Descriptor(static_cast<int>(
      ::syscall(SYS_openat2, root_.get(), path.empty() ? "." : path.c_str(), &how, sizeof how)));
}

struct stat TreeFiles::StatOf(Id id) const {
  const Node& node = this->node(id);
  struct stat info = {};
  info.st_ino = InodeOfPath(node.path);
  info.st_nlink = 1;
  info.st_mode = node.kind == Kind::kFolder ? S_IFDIR | 0555
                 : node.kind == Kind::kLink ? S_IFLNK | 0777
                                            : S_IFREG | (node.executable ? 0555u : 0444u);
  info.st_size = node.kind == Kind::kFolder ? 0 : node.size;
  info.st_blksize = 4096;
  info.st_blocks = (info.st_size + 511) / 512;
  info.st_atim.tv_sec = info.st_mtim.tv_sec = info.st_ctim.tv_sec = kTime;
  return info;
}

int TreeFiles::List(Id id) {
  Node& folder = nodes_[id - kRoot];
  if (folder.kind != Kind::kFolder) return ENOTDIR;
  if (folder.listed) return 0;
  Descriptor opened = OpenBelow(folder.path, O_RDONLY | O_DIRECTORY);
  if (!opened.valid()) return errno;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(opened.get()), ::closedir);
  if (!entries) return errno;
  opened.Release();
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(entries.get());
    if (!entry) break;
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    mode_t mode = DTTOIF(entry->d_type);
    if (entry->d_type == DT_UNKNOWN) {
      struct stat info = {};
      if (::fstatat(::dirfd(entries.get()), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return errno;
      mode = info.st_mode;
    }
    if (const auto kind = KindOf(mode)) folder.children[name] = {*kind, 0};
  }
  if (errno != 0) return errno;
  folder.listed = true;
  return 0;
}

int TreeFiles::Find(Id id, const std::string& name, Id& found) {
  found = 0;
  if (const int error = List(id)) return error;
  Node& folder = nodes_[id - kRoot];
  const auto child = folder.children.find(name);
  if (child == folder.children.end()) return 0;
  auto& [kind, known] = child->second;
  if (known == 0) {
    Node node{.path = JoinPath(folder.path, name), .kind = kind, .parent = id};
    const Descriptor opened = OpenBelow(node.path, O_PATH);
    struct stat info = {};
    if (!opened.valid() || ::fstat(opened.get(), &info) != 0) return errno;
    if (KindOf(info.st_mode) != kind) return EIO;  // somebody edits the tree
    node.executable = (info.st_mode & S_IXUSR) != 0;
    node.size = info.st_size;
    nodes_.push_back(std::move(node));
    known = nodes_.size() - 1 + kRoot;
  }
  found = known;
  return 0;
}

int TreeFiles::Forms(Id id, const std::string& module, std::string& forms) {
  if (const int error = List(id)) return error;
  const Node& folder = node(id);
  forms.clear();
  bool link = false;
  const auto add = [&](const std::string& form, Kind kind) {
    link |= kind == Kind::kLink;
    absl::StrAppend(&forms, form, kind == Kind::kFolder ? "/\n" : "\n");
  };
  const auto package = folder.children.find(module);
  if (package != folder.children.end() && package->second.first != Kind::kFile) {
    add(module, package->second.first);
  }
  if (package != folder.children.end() && package->second.first == Kind::kFolder) {
    Id inside = 0;
    if (const int error = Find(id, module, inside)) return error;
    if (const int error = List(inside)) return error;
    const auto& names = node(inside).children;
    for (auto it = names.lower_bound("__init__.");
         it != names.end() && absl::StartsWith(it->first, "__init__."); ++it) {
      if (it->second.first != Kind::kFolder) add(JoinPath(module, it->first), it->second.first);
    }
  }
  const std::string stem = module + ".";
  for (auto it = folder.children.lower_bound(stem);
       it != folder.children.end() && absl::StartsWith(it->first, stem); ++it) {
    const absl::string_view ending = absl::string_view(it->first).substr(module.size());
    if (it->second.first != Kind::kFolder && IsModuleEnding(ending))
      add(it->first, it->second.first);
  }
  return link ? EOPNOTSUPP : 0;
}

int TreeFiles::ReadLink(Id id, std::string& target) const {
  const Node& link = node(id);
  if (link.kind != Kind::kLink) return EINVAL;
  const Descriptor opened = OpenBelow(link.path, O_PATH);
  if (!opened.valid()) return errno;
  target.resize(PATH_MAX);
  const ssize_t length = ::readlinkat(opened.get(), "", target.data(), target.size());
  if (length < 0) return errno;
  target.resize(static_cast<size_t>(length));
  return 0;
}

int TreeFiles::Read(Id id, int64_t offset, size_t size, std::string& bytes) {
  const Node& file = node(id);
  if (file.kind != Kind::kFile) return EISDIR;
  if (open_ != id) {
    Descriptor opened = OpenBelow(file.path, O_RDONLY | O_NONBLOCK);
    struct stat info = {};
    if (!opened.valid() || ::fstat(opened.get(), &info) != 0) return errno;
    if (!S_ISREG(info.st_mode)) return EIO;
    open_file_ = std::move(opened);
    open_ = id;
  }
  bytes.resize(size);
  size_t got = 0;
  while (got < size) {
    const ssize_t n = ::pread(open_file_.get(), bytes.data() + got, size - got,
                              offset + static_cast<int64_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  bytes.resize(got);
  return 0;
}

}  // namespace bkm
