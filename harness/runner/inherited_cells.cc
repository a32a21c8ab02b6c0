// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/inherited_cells.h"

#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

constexpr char kInheritedFile[] = "inherited.json";

// What two measurements of one cell need not have in common.
constexpr const char* kVolatile[] = {"closure", "ignored_events", "machine", "measured", "sandbox",
                                     "seconds", "timeouts",       "usage",   "warnings"};

bool IsPathCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '/' || c == '_' || c == '-' ||
         c == '.' || c == '+';
}

// Shortens absolute paths to their last part, and addresses: they differ between trees and
// processes.
std::string WithoutPlaces(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const bool starts = i == 0 || !IsPathCharacter(text[i - 1]);
    if (text[i] == '/' && starts) {
      size_t end = i;
      while (end < text.size() && IsPathCharacter(text[end])) ++end;
      const size_t last = text.rfind('/', end - 1);
      absl::StrAppend(&result, absl::string_view(text).substr(last, end - last));
      i = end;
    } else if (text.compare(i, 2, "0x") == 0 && starts) {
      result += "0x";
      i += 2;
      while (i < text.size() && absl::ascii_isxdigit(static_cast<unsigned char>(text[i]))) ++i;
    } else {
      result += text[i++];
    }
  }
  return result;
}

void ForgetPlaces(Json& json) {
  if (json.is_string()) {
    json = WithoutPlaces(json.get_ref<const std::string&>());
  } else if (json.is_structured()) {
    for (Json& item : json) ForgetPlaces(item);
  }
}

Json Facts(Json observation) {
  if (!observation.is_object()) return observation;
  for (const char* key : kVolatile) observation.erase(key);
  if (const auto stages = observation.find("stages");
      stages != observation.end() && stages->is_array()) {
    for (Json& stage : *stages) {
      if (stage.is_object()) stage = stage.value("stage", Json());
    }
  }
  if (const auto steps = observation.find("steps");
      steps != observation.end() && steps->is_array()) {
    for (Json& step : *steps) {
      if (step.is_object()) step.erase("seconds");
    }
  }
  ForgetPlaces(observation);
  return observation;
}

std::map<std::string, fs::path> Tensors(const fs::path& folder) {
  std::map<std::string, fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder / "tensors", error);
       !error && it != fs::directory_iterator(); it.increment(error)) {
    std::error_code unreadable;
    if (fs::is_regular_file(it->symlink_status(unreadable)))
      files.emplace(it->path().filename().string(), it->path());
  }
  return files;
}

}  // namespace

std::string FirstDifference(const Json& before, const fs::path& before_folder, const Json& after,
                            const fs::path& after_folder) {
  const Json was = Facts(before), is = Facts(after);
  if (!was.is_object() || !is.is_object()) return was == is ? "" : "observation.json";
  std::set<std::string> keys;
  for (const Json* facts : {&was, &is}) {
    for (const auto& [key, value] : facts->items()) keys.insert(key);
  }
  for (const std::string& key : keys) {
    if (was.value(key, Json()) != is.value(key, Json())) return key;
  }
  const std::map<std::string, fs::path> old_files = Tensors(before_folder);
  const std::map<std::string, fs::path> new_files = Tensors(after_folder);
  for (const auto& [name, path] : new_files) {
    if (!old_files.contains(name)) return absl::StrCat("tensors/", name);
  }
  for (const auto& [name, path] : old_files) {
    const auto other = new_files.find(name);
    if (other == new_files.end()) return absl::StrCat("tensors/", name);
    const auto first = Sha256OfFile(path), second = Sha256OfFile(other->second);
    if (!first.ok() || !second.ok() || *first != *second) return absl::StrCat("tensors/", name);
  }
  return "";
}

bool InheritedCells::IsSampled(const std::string& id) const {
  if (one_in_ <= 0) return false;
  const std::string digest = Sha256(absl::StrCat(seed_, " ", id));
  return std::stoull(digest.substr(0, 15), nullptr, 16) % static_cast<uint64_t>(one_in_) == 0;
}

std::optional<InheritedCells::Difference> InheritedCells::Check(size_t index, const std::string& id,
                                                                const Json& observation,
                                                                const fs::path& folder) {
  const auto expected = expected_.find(index);
  if (expected == expected_.end()) return std::nullopt;
  const KeptObservation kept = std::move(expected->second);
  expected_.erase(expected);
  const absl::StatusOr<Json> before = ReadJsonFile(kept.folder / "observation.json");
  if (!before.ok()) return std::nullopt;  // collected meanwhile: nothing depends on it any more
  ++checked_;
  Difference difference{.kept = kept,
                        .what = FirstDifference(*before, kept.folder, observation, folder)};
  if (difference.what.empty()) return std::nullopt;
  for (const auto& [cell, other] : taken_) {
    if (other.folder == kept.folder) difference.cells.push_back(cell);
  }
  differences_.push_back({{"cell", id}, {"from", kept.cell}, {"what", difference.what}});
  return difference;
}

Json InheritedCells::ToJson() const {
  return {
      {"one_in", one_in_}, {"seed", seed_}, {"checked", checked_}, {"differences", differences_}};
}

absl::Status WriteInherited(const fs::path& folder, const KeptObservation& kept) {
  return WriteFile(folder / kInheritedFile,
                   ToText(Json{{"from", kept.cell}, {"folder", kept.folder.string()}}));
}

std::optional<KeptObservation> ReadInherited(const fs::path& folder) {
  const absl::StatusOr<Json> json = ReadJsonFile(folder / kInheritedFile);
  if (!json.ok() || !json->is_object()) return std::nullopt;
  const Json from = json->value("from", Json()), source = json->value("folder", Json());
  if (!from.is_string() || !source.is_string()) return std::nullopt;
  return KeptObservation{from.get<std::string>(), source.get<std::string>()};
}

}  // namespace bkm
