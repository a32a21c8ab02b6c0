// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/folder_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

absl::Status Failed(const fs::path& path, int error) {
  const std::string message =
      absl::StrCat("cannot read ", path.string(), ": ", std::strerror(error));
  if (error == ENOENT) return absl::NotFoundError(message);
  // O_NOFOLLOW says ELOOP of a link; O_DIRECTORY says ENOTDIR of a file or link.
  if (error == ELOOP || error == ENOTDIR || error == ENXIO)
    return absl::InvalidArgumentError(absl::StrCat(message, " (a link or no regular file)"));
  return absl::UnavailableError(message);
}

bool IsName(absl::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
         name.find('\0') == name.npos;
}

const char* KindOf(mode_t mode) {
  return S_ISDIR(mode)    ? "a folder"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device";
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

absl::StatusOr<Descriptor> FolderReader::OpenAt(absl::string_view file, int flags) const {
  const fs::path path = folder_ / std::string(file);
  const std::vector<absl::string_view> names = absl::StrSplit(file, '/');
  if (!std::all_of(names.begin(), names.end(), IsName)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", file, "' is not the name of a file below ", folder_.string()));
  }
  Descriptor at(::open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (size_t i = 0; at.valid() && i < names.size(); ++i) {
    const int how = i + 1 == names.size() ? flags : O_PATH | O_DIRECTORY;
    at = Descriptor(::openat(at.get(), std::string(names[i]).c_str(),
                             how | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  }
  if (!at.valid()) return Failed(path, errno);
  return at;
}

absl::StatusOr<Descriptor> FolderReader::Open(absl::string_view file) const {
  ASSIGN_OR_RETURN(Descriptor opened, OpenAt(file, O_RDONLY));
  struct stat status = {};
  if (::fstat(opened.get(), &status) != 0) return Failed(folder_ / std::string(file), errno);
  if (S_ISREG(status.st_mode)) return opened;
  return absl::InvalidArgumentError(absl::StrCat((folder_ / std::string(file)).string(), " is ",
                                                 KindOf(status.st_mode), ", not a regular file"));
}

absl::StatusOr<std::string> FolderReader::Read(absl::string_view file, int64_t most) const {
  ASSIGN_OR_RETURN(const Descriptor opened, Open(file));
  const fs::path path = folder_ / std::string(file);
  struct stat status = {};
  if (::fstat(opened.get(), &status) != 0) return Failed(path, errno);
  if (status.st_size > most) {
    return absl::InvalidArgumentError(absl::StrCat(path.string(), " has ", status.st_size,
                                                   " bytes; at most ", most, " are read"));
  }
  // One byte more than the file has shows that it grows.
  std::string bytes(static_cast<size_t>(status.st_size) + 1, '\0');
  size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t n = ::read(opened.get(), bytes.data() + size, bytes.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Failed(path, errno);
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  if (size != static_cast<size_t>(status.st_size))
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), " changed its length while it was read"));
  bytes.resize(size);
  return bytes;
}

absl::StatusOr<std::vector<FolderReader::Entry>> FolderReader::List(absl::string_view subfolder,
                                                                    size_t most) const {
  const fs::path path = folder_ / std::string(subfolder);
  absl::StatusOr<Descriptor> opened = OpenAt(subfolder, O_RDONLY | O_DIRECTORY);
  if (absl::IsNotFound(opened.status())) return std::vector<Entry>();
  RETURN_IF_ERROR(opened.status());
  const std::unique_ptr<DIR, CloseDirectory> directory(::fdopendir(opened->get()));
  if (!directory) return Failed(path, errno);
  opened->Release();
  std::vector<Entry> entries;
  while (const dirent* found = ::readdir(directory.get())) {
    if (!IsName(found->d_name)) continue;
    if (entries.size() == most)
      return absl::InvalidArgumentError(
          absl::StrCat(path.string(), " has more than ", most, " files"));
    struct stat status = {};
    if (::fstatat(::dirfd(directory.get()), found->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
      return Failed(path / found->d_name, errno);
    entries.push_back({found->d_name, S_ISREG(status.st_mode), status.st_size,
                       static_cast<int64_t>(status.st_nlink)});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

}  // namespace bkm
