// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/store/checksums.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "harness/base/descriptor.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

constexpr absl::string_view kHeader = "bkm manifest 1\n";
constexpr absl::string_view kEnd = "end ";
constexpr const char* kSealSuffix = ".sha256";
// Deeper folders are not evidence of ours; each level costs an open file.
constexpr int kMaxDepth = 32;

absl::Status Damaged(const fs::path& path, absl::string_view how) {
  return absl::DataLossError(absl::StrCat(path.string(), " ", how));
}

absl::Status SystemError(const fs::path& path, int error) {
  return absl::UnavailableError(
      absl::StrCat("cannot read ", path.string(), ": ", std::strerror(error)));
}

// A line of the manifest.
struct Entry {
  std::string path;  // relative to the folder
  std::string sha256;
  int64_t size = 0;
};

// Names are the subject's choice: only letters, digits and a few signs stay as they are.
std::string Escaped(absl::string_view path) {
  std::string escaped;
  for (const char c : path) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '/' || c == '.' ||
                       c == '_' || c == '-';
    if (plain) {
      escaped += c;
    } else {
      absl::StrAppend(&escaped, "%", absl::BytesToHexString(absl::string_view(&c, 1)));
    }
  }
  return escaped;
}

std::optional<std::string> Unescaped(absl::string_view text) {
  std::string path;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      path += text[i];
      continue;
    }
    if (i + 2 >= text.size() || !absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 1])) ||
        !absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 2])))
      return std::nullopt;
    path += absl::HexStringToBytes(text.substr(i + 1, 2));
    i += 2;
  }
  return path;
}

// Opens `name` in the folder `at` without following a link or waiting for a pipe's other end.
Descriptor OpenIn(int at, const std::string& name, int flags) {
  return Descriptor(
      ::openat(at, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags));
}

// Collects the entries of a folder, and makes them survive a power cut.
class Collector {
 public:
  Collector(const fs::path& folder, bool sync) : folder_(folder), sync_(sync) {}

  absl::Status Add(int at, const std::string& name, const std::string& path, int depth) {
    Descriptor opened = OpenIn(at, name, 0);
    // A link, a socket, or a file that has been removed since: no evidence.
    if (!opened.valid() && (errno == ELOOP || errno == ENXIO || errno == ENOENT))
      return absl::OkStatus();
    if (!opened.valid()) return SystemError(folder_ / path, errno);
    struct stat info = {};
    if (::fstat(opened.get(), &info) != 0) return SystemError(folder_ / path, errno);
    if (S_ISDIR(info.st_mode)) return AddFolder(std::move(opened), path, depth + 1);
    if (!S_ISREG(info.st_mode)) return absl::OkStatus();
    if (sync_) RETURN_IF_ERROR(SyncFile(opened.get(), folder_ / path));
    ASSIGN_OR_RETURN(std::string sha256, Sha256OfOpenFile(opened.get(), folder_ / path));
    entries_.push_back({path, std::move(sha256), info.st_size});
    return absl::OkStatus();
  }

  absl::Status AddFolder(Descriptor opened, const std::string& path, int depth) {
    const fs::path full = path.empty() ? folder_ : folder_ / path;
    if (depth > kMaxDepth) {
      return absl::InvalidArgumentError(absl::StrCat(full.string(), ": more than ", kMaxDepth,
                                                     " folders lie within each other here"));
    }
    const int fd = opened.get();
    const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(opened.Release()), &::closedir);
    if (!listing) return SystemError(full, errno);
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(listing.get())) {
      const std::string name = entry->d_name;
      if (name != "." && name != ".." && (depth > 0 || name != kManifestFile))
        names.push_back(name);
    }
    for (const std::string& name : names)
      RETURN_IF_ERROR(Add(fd, name, path.empty() ? name : absl::StrCat(path, "/", name), depth));
    return sync_ ? SyncFolder(full) : absl::OkStatus();
  }

  void AddComing(const std::string& name, const std::string& content) {
    std::erase_if(entries_, [&](const Entry& entry) { return entry.path == name; });
    entries_.push_back({name, Sha256(content), static_cast<int64_t>(content.size())});
  }

  // The manifest's text.
  std::string TakeText() {
    std::sort(entries_.begin(), entries_.end(),
              [](const Entry& a, const Entry& b) { return a.path < b.path; });
    std::string text(kHeader);
    for (const Entry& entry : entries_)
      absl::StrAppend(&text, entry.sha256, " ", entry.size, " ", Escaped(entry.path), "\n");
    return absl::StrCat(text, kEnd, Sha256(text), "\n");
  }

 private:
  const fs::path folder_;
  const bool sync_;
  std::vector<Entry> entries_;
};

absl::Status Verify(int folder, const fs::path& root, const Entry& entry) {
  const fs::path path = root / entry.path;
  Descriptor at;
  const std::vector<std::string> parts = absl::StrSplit(entry.path, '/');
  for (const std::string& part : parts) {
    if (part.empty() || part == "." || part == "..") return Damaged(path, "cannot be a file here");
    at = OpenIn(at.valid() ? at.get() : folder, part, &part == &parts.back() ? 0 : O_DIRECTORY);
    if (at.valid()) continue;
    if (errno == ENOENT || errno == ENOTDIR) return Damaged(path, "is missing");
    if (errno == ELOOP || errno == ENXIO) return Damaged(path, "is not a regular file");
    if (errno == EIO) return Damaged(path, "cannot be read: Input/output error");
    return SystemError(path, errno);
  }
  struct stat info = {};
  if (::fstat(at.get(), &info) != 0) return SystemError(path, errno);
  if (!S_ISREG(info.st_mode)) return Damaged(path, "is not a regular file");
  if (info.st_size != entry.size) {
    return Damaged(
        path, absl::StrCat("is damaged: it has ", info.st_size, " bytes instead of ", entry.size));
  }
  const absl::StatusOr<std::string> sha256 = Sha256OfOpenFile(at.get(), path);
  if (!sha256.ok()) return Damaged(path, "cannot be read to its end");
  return *sha256 == entry.sha256 ? absl::OkStatus()
                                 : Damaged(path, "is damaged: its content has changed");
}

std::string SealOf(absl::string_view sha256, int64_t size) {
  return absl::StrCat(sha256, " ", size, "\n");
}

// Sets a damaged file aside, reports it, and answers as if it had not been there.
absl::Status MakeAgain(const fs::path& path, const absl::Status& damage,
                       const DamageReport& report) {
  const absl::Status aside = SetAside(path).status();
  // Another process may have done so in the meantime.
  std::error_code error;
  if (!aside.ok() && fs::exists(path, error)) return aside;
  if (report) report(absl::StrCat(damage.message(), ": making it again"));
  return absl::NotFoundError(damage.message());
}

absl::StatusOr<std::vector<Entry>> ParseManifest(absl::string_view text, const fs::path& path) {
  const absl::Status damaged = Damaged(path, "is damaged");
  const size_t end = text.rfind(kEnd);
  if (end == text.npos || text.substr(end) != absl::StrCat(kEnd, Sha256(text.substr(0, end)), "\n"))
    return damaged;
  absl::string_view lines = text.substr(0, end);
  if (!absl::ConsumePrefix(&lines, kHeader)) return damaged;
  std::vector<Entry> entries;
  for (const absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    Entry entry;
    if (words.size() != 3 || !absl::SimpleAtoi(words[1], &entry.size)) return damaged;
    std::optional<std::string> name = Unescaped(words[2]);
    if (!name) return damaged;
    entry.path = *std::move(name);
    entry.sha256 = std::string(words[0]);
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

absl::Status WriteManifest(const fs::path& folder, const std::vector<std::string>& parts,
                           const std::map<std::string, std::string>& coming) {
  Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened.valid()) return SystemError(folder, errno);
  Collector collector(folder, /*sync=*/true);
  for (const std::string& part : parts) RETURN_IF_ERROR(collector.Add(opened.get(), part, part, 0));
  if (parts.empty()) RETURN_IF_ERROR(collector.AddFolder(std::move(opened), "", 0));
  for (const auto& [name, content] : coming) collector.AddComing(name, content);
  return WriteFile(folder / kManifestFile, collector.TakeText());
}

absl::Status WriteManifestUnsynced(const fs::path& folder) {
  Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened.valid()) return SystemError(folder, errno);
  Collector collector(folder, /*sync=*/false);
  RETURN_IF_ERROR(collector.AddFolder(std::move(opened), "", 0));
  return WriteScratchFile(folder / kManifestFile, collector.TakeText());
}

absl::Status VerifyManifest(const fs::path& folder) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) {
    return errno == ENOENT ? absl::NotFoundError(absl::StrCat(folder.string(), " does not exist"))
                           : SystemError(folder, errno);
  }
  const fs::path path = folder / kManifestFile;
  struct stat info = {};
  if (::lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return Damaged(path, "is not a regular file");
  absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return text.status();
  if (!text.ok()) return Damaged(path, "cannot be read");
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, ParseManifest(*text, path));
  for (const Entry& entry : entries) RETURN_IF_ERROR(Verify(opened.get(), folder, entry));
  return absl::OkStatus();
}

absl::Status SealFile(const fs::path& path) {
  const Descriptor file = OpenIn(AT_FDCWD, path.string(), 0);
  struct stat info = {};
  if (!file.valid() || ::fstat(file.get(), &info) != 0) return SystemError(path, errno);
  RETURN_IF_ERROR(SyncFile(file.get(), path));
  ASSIGN_OR_RETURN(const std::string sha256, Sha256OfOpenFile(file.get(), path));
  return WriteFile(path.string() + kSealSuffix, SealOf(sha256, info.st_size));
}

absl::Status VerifySealedFile(const fs::path& path) {
  absl::StatusOr<std::string> seal = ReadFile(path.string() + kSealSuffix);
  RETURN_IF_ERROR(seal.status());
  const std::vector<std::string> words = absl::StrSplit(absl::StripSuffix(*seal, "\n"), ' ');
  Entry entry{.path = path.filename().string()};
  if (words.size() != 2 || !absl::SimpleAtoi(words[1], &entry.size))
    return Damaged(path.string() + kSealSuffix, "is damaged");
  entry.sha256 = words[0];
  const Descriptor folder(::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return SystemError(path.parent_path(), errno);
  return Verify(folder.get(), path.parent_path(), entry);
}

absl::Status WriteKeptFile(const fs::path& path, absl::string_view text) {
  // A power cut in between leaves a file that does not fit, and is made again.
  RETURN_IF_ERROR(WriteFile(path.string() + kSealSuffix,
                            SealOf(Sha256(text), static_cast<int64_t>(text.size()))));
  return WriteFile(path, text);
}

absl::StatusOr<std::string> ReadKeptFile(const fs::path& path, const DamageReport& report) {
  absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return text;
  const absl::Status sound = VerifySealedFile(path);
  if (absl::IsDataLoss(sound)) return MakeAgain(path, sound, report);
  if (!sound.ok() && !absl::IsNotFound(sound)) return sound;
  return text;
}

absl::StatusOr<Json> ReadKeptJson(const fs::path& path, const DamageReport& report) {
  ASSIGN_OR_RETURN(const std::string text, ReadKeptFile(path, report));
  absl::StatusOr<Json> json = ParseJson(text, path.string());
  if (json.ok()) return json;
  return MakeAgain(path, Damaged(path, "is damaged: it is not JSON"), report);
}

absl::StatusOr<fs::path> SetAside(const fs::path& path) {
  const std::string stem =
      absl::StrCat(path.string(), ".damaged-",
                   absl::FormatTime("%Y%m%dT%H%M%SZ", absl::Now(), absl::UTCTimeZone()));
  for (int number = 1; number < 1000; ++number) {
    const fs::path aside = number == 1 ? stem : absl::StrCat(stem, "-", number);
    // An existing target must stay: it is what an earlier run set aside.
    if (::renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, aside.c_str(), RENAME_NOREPLACE) == 0)
      return aside;
    if (errno == EEXIST || errno == ENOTEMPTY) continue;
    return absl::UnavailableError(
        absl::StrCat("cannot set ", path.string(), " aside: ", std::strerror(errno)));
  }
  return absl::UnavailableError(
      absl::StrCat("cannot set ", path.string(), " aside: remove the folders ", stem, "*"));
}

absl::Status RemoveManifest(const fs::path& folder) {
  const fs::path path = folder / kManifestFile;
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot remove ", path.string(), ": ", std::strerror(errno)));
}

}  // namespace bkm
