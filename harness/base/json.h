// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_JSON_H_
#define HARNESS_BASE_JSON_H_

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Instantiated once, in json_instances.cc, which shortens the compilation of every other file by a
// tenth.
extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace bkm {

using Json = nlohmann::json;
// Keeps keys in insertion order, for files that people read.
using OrderedJson = nlohmann::ordered_json;

// Parses strictly, without exceptions. The error message starts with `origin`, for example a path.
absl::StatusOr<Json> ParseJson(absl::string_view text, absl::string_view origin);
absl::StatusOr<Json> ReadJsonFile(const std::filesystem::path& path);

// One line. Invalid UTF-8 becomes U+FFFD.
std::string ToLine(const Json& json);
// Indented by two spaces, with a newline at the end.
std::string ToText(const Json& json);
std::string ToText(const OrderedJson& json);

// Reads one JSON object strictly. It keeps the first error, and every later read returns a default,
// so a caller reads in straight-line code and ends with `return reader.Finish()`, which also
// refuses keys that were not read. Messages name the origin and the JSON path: "matrices/a.json:
// $.groups[0].probe.attention: ...".
class ObjectReader {
 public:
  // `json` must outlive the reader.
  ObjectReader(const Json& json, std::string origin, std::string path = "$");

  std::string String(const char* key);                        // required
  std::string String(const char* key, std::string fallback);  // optional
  int64_t Int(const char* key, int64_t fallback, int64_t min, int64_t max);
  double Number(const char* key, double fallback);
  bool Bool(const char* key, bool fallback);
  // A list of strings; a single string counts as a list of one. `fallback` when the key is absent.
  std::vector<std::string> Strings(const char* key, std::vector<std::string> fallback = {});
  // A required string that must be one of `known`.
  std::string OneOf(const char* key, const std::vector<std::string>& known);
  // The value, or nullptr when the key is absent. The key counts as read.
  const Json* Child(const char* key);
  // Calls `read(item, path)` for each item of the array `key`, which may be absent.
  template <typename F>
  void ForEach(const char* key, F read) {
    const Json* items = Array(key);
    for (size_t i = 0; items && i < items->size() && status_.ok(); ++i) {
      Keep(read((*items)[i], PathOf(key) + "[" + std::to_string(i) + "]"));
    }
  }

  bool Has(const char* key) const;
  std::string PathOf(absl::string_view key) const;
  const std::string& origin() const { return origin_; }
  // Records an error about `key`, unless an earlier error is recorded already.
  void Fail(absl::string_view key, absl::string_view message);
  void Keep(const absl::Status& status);
  // Returns the first error. Without one, returns an error if a key was not read.
  absl::Status Finish();

 private:
  const Json* Find(const char* key, bool required);
  const Json* Array(const char* key);

  const Json& json_;
  std::string origin_;
  std::string path_;
  absl::Status status_;
  std::set<std::string> read_;
};

}  // namespace bkm

#endif  // HARNESS_BASE_JSON_H_
