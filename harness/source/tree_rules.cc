// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/tree_rules.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/status_macros.h"
#include "harness/source/subject_fault.h"
#include "harness/source/tree_listing.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

// As it may stand in a message: short, printable ASCII.
std::string Shown(absl::string_view name) {
  constexpr size_t kMost = 80;
  std::string shown = absl::CHexEscape(name.substr(0, kMost));
  if (name.size() > kMost) shown += "...";
  return absl::StrCat("'", shown, "'");
}

bool IsContinuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// The length of the well-formed UTF-8 sequence at the start of `text`; 0 when there is none.
size_t SequenceLength(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!IsContinuation(byte(i))) return 0;
  }
  const unsigned char second = byte(1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool outside = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return overlong || outside ? 0 : length;
}

std::string Mebibytes(uintmax_t bytes) { return absl::StrCat(bytes >> 20, " MiB"); }

}  // namespace

absl::Status CheckName(absl::string_view name) {
  if (name.empty()) return TreeNotAllowed("the tree has an entry without a name");
  const bool reserved = name == "." || name == ".." || absl::EqualsIgnoreCase(name, ".git");
  if (reserved || name.find('/') != name.npos || name.find('\0') != name.npos)
    return TreeNotAllowed(absl::StrCat("the tree has an entry with the name ", Shown(name)));
  return absl::OkStatus();
}

absl::Status CheckWrittenName(absl::string_view name) {
  if (name.size() > kLongestName) {
    return TreeNotAllowed(absl::StrCat("the tree has a name of ", name.size(), " bytes, more than ",
                                       kLongestName, ": ", Shown(name)));
  }
  for (absl::string_view rest = name; !rest.empty();) {
    const size_t length = SequenceLength(rest);
    const auto first = static_cast<unsigned char>(rest[0]);
    const bool c1 = length == 2 && first == 0xC2 && static_cast<unsigned char>(rest[1]) < 0xA0;
    if (length == 0 || first < 0x20 || first == 0x7F || c1) {
      return TreeNotAllowed(absl::StrCat("the tree has the name ", Shown(name), ", which is not ",
                                         length == 0 ? "UTF-8" : "printable"));
    }
    rest.remove_prefix(length);
  }
  return absl::OkStatus();
}

absl::Status CheckPath(absl::string_view path, const TreeBounds& bounds) {
  if (path.size() > bounds.path) {
    return TreeNotAllowed(absl::StrCat("the tree has a path of ", path.size(), " bytes, more than ",
                                       bounds.path, ": ", Shown(path)));
  }
  if (std::count(path.begin(), path.end(), '/') > bounds.depth) {
    return TreeNotAllowed(
        absl::StrCat("the tree has a path of more than ", bounds.depth, " folders: ", Shown(path)));
  }
  return absl::OkStatus();
}

absl::Status CheckLink(absl::string_view path, absl::string_view target) {
  constexpr size_t kLongestTarget = 4095;  // PATH_MAX without its NUL
  if (!target.empty() && target.size() <= kLongestTarget && target.find('\0') == target.npos)
    return absl::OkStatus();
  return TreeNotAllowed(
      absl::StrCat("the tree has a symbolic link without a usable target: ", Shown(path)));
}

bool LeavesTree(absl::string_view path, absl::string_view target) {
  if (absl::StartsWith(target, "/")) return true;
  auto above = std::count(path.begin(), path.end(), '/');
  bool named = false;
  for (const absl::string_view part : absl::StrSplit(target, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      named = true;
    } else if (named || --above < 0) {
      return true;
    }
  }
  return false;
}

absl::Status TreeMeter::CountEntry() {
  if (++entries_ <= bounds_.entries) return absl::OkStatus();
  return TreeNotAllowed(absl::StrCat("the tree has more than ", bounds_.entries, " entries"));
}

absl::Status TreeMeter::CountFile(absl::string_view path, uintmax_t bytes) {
  if (bytes > bounds_.file) {
    return TreeNotAllowed(absl::StrCat("the tree has a file of ", Mebibytes(bytes), ", more than ",
                                       Mebibytes(bounds_.file), ": ", Shown(path)));
  }
  bytes_ += bytes;
  return CheckBytes();
}

absl::Status TreeMeter::Add(const TreeMeter& other) {
  entries_ += other.entries_;
  bytes_ += other.bytes_;
  return CheckBytes();
}

absl::Status TreeMeter::CheckBytes() const {
  if (bytes_ <= bounds_.all_files) return absl::OkStatus();
  return TreeNotAllowed(
      absl::StrCat("the files of the tree have more than ", Mebibytes(bounds_.all_files)));
}

absl::Status FindFiles(const fs::path& folder, const TreeBounds& bounds,
                       std::vector<FoundFile>& files) {
  TreeMeter meter(bounds);
  const auto cannot_read = [&](const std::error_code& error) {
    return absl::UnavailableError(
        absl::StrCat("cannot read the folder ", folder.string(), ": ", error.message()));
  };
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    const fs::path& path = it->path();
    const fs::file_type type = it->symlink_status(error).type();
    if (error) break;
    RETURN_IF_ERROR(meter.CountEntry());
    if (type == fs::file_type::directory) {
      const std::string name = path.filename();
      if (name == kBytecodeFolder || name == ".git") it.disable_recursion_pending();
      if (it.depth() >= bounds.depth) {
        return TreeNotAllowed(absl::StrCat("the tree has a path of more than ", bounds.depth,
                                           " folders: ", Shown(path.string())));
      }
      continue;
    }
    const bool is_link = type == fs::file_type::symlink;
    if (!is_link && type != fs::file_type::regular) continue;
    std::string relative = path.lexically_relative(folder).string();
    RETURN_IF_ERROR(CheckPath(relative, bounds));
    if (!is_link) {
      const uintmax_t size = it->file_size(error);
      if (error) break;
      RETURN_IF_ERROR(meter.CountFile(relative, size));
    }
    files.push_back({std::move(relative), is_link});
  }
  if (error) return cannot_read(error);
  std::sort(files.begin(), files.end(),
            [](const FoundFile& a, const FoundFile& b) { return a.path < b.path; });
  return absl::OkStatus();
}

}  // namespace bkm
