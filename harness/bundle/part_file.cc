// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/bundle/part_file.h"

#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "harness/base/check.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// Of one file. Together with the largest part it bounds what a file can make of memory and disk.
constexpr int64_t kMostParts = 4'000'000;
constexpr int64_t kMostBytes = int64_t{256} << 30;

Database::Options OptionsOf(const fs::path& path) {
  return {.path = path,
          .if_damaged = "copy the file again, or make it again",
          .wait = std::chrono::seconds(10),
          .application_id = 0x626b6d62,  // "bkmb"
          .travels = true,
          .tables = {"CREATE TABLE name (name TEXT PRIMARY KEY, part TEXT NOT NULL)",
                     "CREATE TABLE part (sha256 TEXT PRIMARY KEY, bytes INTEGER NOT NULL, "
                     "content BLOB NOT NULL)"}};
}

// The content as it is stored: as it is if compression does not make it smaller.
std::string Packed(absl::string_view content) {
  uLongf size = ::compressBound(content.size());
  std::string packed(size, '\0');
  const int code =
      ::compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                  reinterpret_cast<const Bytef*>(content.data()), content.size(), /*level=*/6);
  HARNESS_CHECK(code == Z_OK) << "zlib: " << code;
  if (size >= content.size()) return std::string(content);
  packed.resize(size);
  return packed;
}

// The content of `bytes` bytes; nullopt if that is not what was packed.
std::optional<std::string> Unpacked(std::string packed, size_t bytes) {
  if (packed.size() == bytes) return packed;
  std::string content(bytes, '\0');
  uLongf size = bytes;
  const int code = ::uncompress(reinterpret_cast<Bytef*>(content.data()), &size,
                                reinterpret_cast<const Bytef*>(packed.data()), packed.size());
  if (code != Z_OK || size != bytes) return std::nullopt;
  return content;
}

}  // namespace

bool IsPartName(absl::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

absl::StatusOr<PartFile> PartFile::Open(const fs::path& path) {
  ASSIGN_OR_RETURN(Database database, Database::Open(OptionsOf(path)));
  return PartFile(std::move(database));
}

bool PartFile::IsUnfinished(const fs::path& path) {
  std::error_code error;
  return fs::exists(path.string() + "-journal", error);
}

absl::StatusOr<PartFile> PartFile::OpenForReading(const fs::path& path) {
  if (IsUnfinished(path)) {
    return absl::DataLossError(
        absl::StrCat(path.string(),
                     " is not finished: what writes it is running, or was killed (give the same "
                     "bkm work again)"));
  }
  ASSIGN_OR_RETURN(Database database, Database::OpenForReading(OptionsOf(path)));
  PartFile file(std::move(database));
  ASSIGN_OR_RETURN(const auto size, file.Size());
  if (size.first <= kMostParts && size.second <= kMostBytes) return file;
  return absl::DataLossError(absl::StrCat(path.string(), " claims to hold ", size.first,
                                          " parts of ", size.second,
                                          " bytes, which is more than this bkm reads"));
}

absl::Status PartFile::Damaged(const std::string& part, absl::string_view why) const {
  return absl::DataLossError(absl::StrCat(path().string(), ": the part ", part, " ", why,
                                          " (copy the file again, or make it again)"));
}

absl::StatusOr<std::string> PartFile::Add(absl::string_view content) {
  const std::string part = Sha256(content);
  if (content.size() > static_cast<size_t>(kLargestPart)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path().string(), ": a part of ", content.size(), " bytes is too large"));
  }
  ASSIGN_OR_RETURN(const bool is_known, Has(part));
  if (is_known) return part;
  RETURN_IF_ERROR(database_.Run("INSERT INTO part VALUES (?, ?, CAST(? AS BLOB))",
                                {part, absl::StrCat(content.size()), Packed(content)}));
  return part;
}

absl::Status PartFile::SetName(absl::string_view name, absl::string_view part) {
  return database_.Run("INSERT OR REPLACE INTO name VALUES (?, ?)", {name, part});
}

absl::Status PartFile::Transact(const std::function<absl::Status()>& body) const {
  return database_.Transact(body);
}

absl::StatusOr<bool> PartFile::Has(const std::string& part) const {
  ASSIGN_OR_RETURN(const auto known,
                   database_.QueryOne("SELECT sha256 FROM part WHERE sha256 = ?", {part}));
  return known.has_value();
}

absl::StatusOr<std::string> PartFile::Read(const std::string& part) const {
  if (!IsPartName(part)) return Damaged(part.substr(0, 64), "has no name of a part");
  ASSIGN_OR_RETURN(const auto bytes,
                   database_.QueryOne("SELECT bytes FROM part WHERE sha256 = ?", {part}));
  if (!bytes) return Damaged(part, "is missing");
  int64_t size = 0;
  if (!absl::SimpleAtoi(*bytes, &size) || size < 0 || size > kLargestPart)
    return Damaged(part, "is too large");
  ASSIGN_OR_RETURN(auto packed, database_.QueryOne("SELECT content FROM part WHERE sha256 = ? AND "
                                                   "length(content) <= bytes",
                                                   {part}));
  if (!packed) return Damaged(part, "is damaged");
  std::optional<std::string> content = Unpacked(*std::move(packed), static_cast<size_t>(size));
  if (!content || Sha256(*content) != part) return Damaged(part, "is damaged");
  return *std::move(content);
}

absl::StatusOr<std::map<std::string, std::string>> PartFile::Named(
    const std::string& prefix) const {
  // One column at a time, in the same order.
  ASSIGN_OR_RETURN(
      const std::vector<std::string> names,
      database_.Query("SELECT name FROM name WHERE substr(name, 1, length(?1)) = ?1 ORDER BY name",
                      {prefix}));
  std::map<std::string, std::string> named;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(named[name.substr(prefix.size())], PartOf(name));
  }
  return named;
}

absl::StatusOr<std::string> PartFile::PartOf(const std::string& name) const {
  ASSIGN_OR_RETURN(std::optional<std::string> part,
                   database_.QueryOne("SELECT part FROM name WHERE name = ?", {name}));
  if (part) return *std::move(part);
  return absl::NotFoundError(
      absl::StrCat(path().string(), " holds no ", name, ": it is another kind of file"));
}

absl::StatusOr<std::pair<int64_t, int64_t>> PartFile::Size() const {
  std::pair<int64_t, int64_t> size;
  ASSIGN_OR_RETURN(const auto parts, database_.QueryOne("SELECT count(*) FROM part"));
  ASSIGN_OR_RETURN(const auto bytes,
                   database_.QueryOne("SELECT CAST(total(bytes) AS INTEGER) FROM part"));
  if (!absl::SimpleAtoi(parts.value_or(""), &size.first) ||
      !absl::SimpleAtoi(bytes.value_or(""), &size.second))
    return absl::DataLossError(absl::StrCat(path().string(), " is damaged"));
  return size;
}

}  // namespace bkm
