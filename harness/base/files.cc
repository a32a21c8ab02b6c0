// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "harness/base/descriptor.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

absl::Status SystemError(absl::string_view doing, const fs::path& path, int error) {
  const std::string message = absl::StrCat(doing, " ", path.string(), ": ", std::strerror(error));
  if (error == ENOENT) return absl::NotFoundError(message);
  if (error == ENOSPC) {
    return absl::ResourceExhaustedError(
        absl::StrCat(message, " (free some space, or set BKM_CACHE)"));
  }
  return absl::UnavailableError(message);
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const fs::path& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return SystemError("cannot read", path, errno ? errno : EIO);
  std::ostringstream out;
  out << in.rdbuf();
  if (in.bad()) return SystemError("cannot read", path, errno ? errno : EIO);
  return std::move(out).str();
}

absl::Status WriteFile(const fs::path& path, absl::string_view content) {
  if (path.has_parent_path()) RETURN_IF_ERROR(CreateDirectories(path.parent_path()));
  std::string temporary = path.string() + ".XXXXXX";
  Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.valid()) return SystemError("cannot write", path, errno);
  ::fchmod(file.get(), 0644);
  int error = WriteAll(file.get(), content) ? 0 : errno;
  const int close_error = file.Close();
  if (!error) error = close_error;
  if (!error && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (!error) return absl::OkStatus();
  ::unlink(temporary.c_str());
  return SystemError("cannot write", path, error);
}

absl::Status CreateDirectories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return SystemError("cannot create the folder", path, error.value());
  return absl::OkStatus();
}

absl::StatusOr<fs::path> CreateTempDirectory(const fs::path& parent, absl::string_view prefix) {
  RETURN_IF_ERROR(CreateDirectories(parent));
  std::string name = (parent / absl::StrCat(prefix, "XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr)
    return SystemError("cannot create a folder in", parent, errno);
  return fs::path(name);
}

absl::Status RemoveTree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (!error) return absl::OkStatus();
  for (auto it = fs::recursive_directory_iterator(
           path, fs::directory_options::skip_permission_denied, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored) && !it->is_symlink(ignored)) {
      fs::permissions(it->path(), fs::perms::owner_all, fs::perm_options::add, ignored);
    }
  }
  fs::remove_all(path, error);
  if (error) return SystemError("cannot remove", path, error.value());
  return absl::OkStatus();
}

fs::path CacheDirectory() {
  if (const char* cache = std::getenv("BKM_CACHE"); cache && *cache) return cache;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) return fs::path(xdg) / "bkm";
  const char* home = std::getenv("HOME");
  return fs::path(home && *home ? home : "/tmp") / ".cache" / "bkm";
}

}  // namespace bkm
