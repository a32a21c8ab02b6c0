// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/json.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/files.h"
#include "harness/base/shown_text.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

// Line and column (from 1) of byte `at`.
std::string Place(absl::string_view text, size_t at) {
  at = std::min(at, text.size());
  const size_t line = 1 + std::count(text.begin(), text.begin() + at, '\n');
  const size_t start = text.substr(0, at).rfind('\n');
  return absl::StrCat("line ", line, ", column ", at - (start == text.npos ? 0 : start + 1) + 1);
}

// Copying, comparing and writing a value recurse into it, and a parsed value takes up to 30 times
// the memory of its text. The deepest that bkm writes are symbol tables of Python files.
constexpr size_t kDeepest = 1000;
constexpr size_t kMostValues = 16'000'000;
constexpr uintmax_t kLargestFile = 256 << 20;

// Finds where the text stops being JSON, or exceeds a limit. nlohmann reports the position only in
// an exception or to a SAX handler.
struct ErrorFinder : nlohmann::json_sax<Json> {
  bool null() override { return Count(); }
  bool boolean(bool) override { return Count(); }
  bool number_integer(number_integer_t) override { return Count(); }
  bool number_unsigned(number_unsigned_t) override { return Count(); }
  bool number_float(number_float_t, const string_t&) override { return Count(); }
  bool string(string_t&) override { return Count(); }
  bool binary(binary_t&) override { return Count(); }
  bool start_object(size_t) override {
    keys.emplace_back();
    return Enter();
  }
  bool key(string_t& name) override {
    if (keys.back().insert(name).second) return true;
    duplicate = name;
    return false;
  }
  bool end_object() override {
    keys.pop_back();
    --depth;
    return true;
  }
  bool start_array(size_t) override { return Enter(); }
  bool end_array() override {
    --depth;
    return true;
  }
  bool parse_error(size_t at, const std::string&, const Json::exception& e) override {
    position = at;
    message = e.what();
    return false;
  }
  bool Count() {
    if (++values > kMostValues)
      limit = absl::StrCat("has more than ", kMostValues, " values; bkm writes no such file");
    return limit.empty();
  }
  bool Enter() {
    if (++depth > kDeepest)
      limit = absl::StrCat("is nested deeper than ", kDeepest, " levels; bkm writes no such file");
    return limit.empty() && Count();
  }
  size_t depth = 0;
  size_t values = 0;
  std::string limit;  // the limit that the text exceeds
  std::vector<std::set<std::string>> keys;
  size_t position = 0;
  std::string message;
  std::string duplicate;
};

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text, absl::string_view origin) {
  ErrorFinder finder;
  if (!Json::sax_parse(text.begin(), text.end(), &finder)) {
    if (!finder.limit.empty())
      return absl::InvalidArgumentError(absl::StrCat(origin, ": the JSON ", finder.limit));
    if (!finder.duplicate.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(origin, ": the key '", finder.duplicate, "' appears twice in one object"));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        origin, ": not JSON at ", Place(text, finder.position ? finder.position - 1 : 0),
        " (a missing or surplus comma, quote or brace?)"));
  }
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

absl::StatusOr<Json> ReadJsonFile(const std::filesystem::path& path) {
  std::error_code error;
  if (const uintmax_t size = std::filesystem::file_size(path, error);
      !error && size > kLargestFile) {
    return absl::InvalidArgumentError(absl::StrCat(path.string(), ": a JSON file of ", size >> 20,
                                                   " MiB is larger than the ", kLargestFile >> 20,
                                                   " MiB that bkm reads"));
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseJson(text, path.string());
}

std::string ToLine(const Json& json) {
  return EscapedJson(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}
std::string ToText(const Json& json) {
  return EscapedJson(json.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}
std::string ToText(const OrderedJson& json) {
  return EscapedJson(json.dump(2, ' ', false, OrderedJson::error_handler_t::replace)) + "\n";
}

ObjectReader::ObjectReader(const Json& json, std::string origin, std::string path)
    : json_(json), origin_(std::move(origin)), path_(std::move(path)) {
  if (!json_.is_object()) {
    status_ = absl::InvalidArgumentError(
        absl::StrCat(origin_, ": ", path_, ": an object is needed here, not ", json_.type_name()));
  }
}

std::string ObjectReader::PathOf(absl::string_view key) const {
  return absl::StrCat(path_, ".", key);
}

void ObjectReader::Keep(const absl::Status& status) {
  if (status_.ok()) status_ = status;
}

void ObjectReader::Fail(absl::string_view key, absl::string_view message) {
  Keep(absl::InvalidArgumentError(absl::StrCat(origin_, ": ", PathOf(key), ": ", message)));
}

bool ObjectReader::Has(const char* key) const { return json_.is_object() && json_.contains(key); }

const Json* ObjectReader::Find(const char* key, bool required) {
  read_.insert(key);
  if (!status_.ok()) return nullptr;
  const auto it = json_.find(key);
  if (it != json_.end()) return &*it;
  if (required)
    Keep(absl::InvalidArgumentError(
        absl::StrCat(origin_, ": ", path_, ": the key '", key, "' is missing")));
  return nullptr;
}

const Json* ObjectReader::Child(const char* key) { return Find(key, false); }

const Json* ObjectReader::Array(const char* key) {
  const Json* value = Find(key, false);
  if (value && !value->is_array()) {
    Fail(key, absl::StrCat("a list is needed here, not ", value->type_name()));
    return nullptr;
  }
  return value;
}

std::string ObjectReader::String(const char* key) {
  const Json* value = Find(key, true);
  if (!value) return "";
  if (value->is_string()) return value->get<std::string>();
  Fail(key, absl::StrCat("a string is needed here, not ", value->type_name()));
  return "";
}

std::string ObjectReader::String(const char* key, std::string fallback) {
  return Has(key) ? String(key) : (read_.insert(key), std::move(fallback));
}

int64_t ObjectReader::Int(const char* key, int64_t fallback, int64_t min, int64_t max) {
  const Json* value = Find(key, false);
  if (!value) return fallback;
  if (!value->is_number_integer()) {
    Fail(key, absl::StrCat("a whole number is needed here, not ",
                           value->is_number() ? value->dump() : value->type_name()));
    return fallback;
  }
  const bool overflows =
      value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (overflows) {
    Fail(key, absl::StrCat(value->get<uint64_t>(), " is out of range: ", min, " to ", max));
    return fallback;
  }
  const int64_t number = value->get<int64_t>();
  if (number < min || number > max) {
    Fail(key, absl::StrCat(number, " is out of range: ", min, " to ", max));
    return fallback;
  }
  return number;
}

double ObjectReader::Number(const char* key, double fallback) {
  const Json* value = Find(key, false);
  if (!value) return fallback;
  if (value->is_number()) return value->get<double>();
  Fail(key, absl::StrCat("a number is needed here, not ", value->type_name()));
  return fallback;
}

bool ObjectReader::Bool(const char* key, bool fallback) {
  const Json* value = Find(key, false);
  if (!value) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  Fail(key, absl::StrCat("true or false is needed here, not ", value->type_name()));
  return fallback;
}

std::vector<std::string> ObjectReader::Strings(const char* key, std::vector<std::string> fallback) {
  const Json* value = Find(key, false);
  if (!value) return fallback;
  if (value->is_string()) return {value->get<std::string>()};
  std::vector<std::string> strings;
  if (!value->is_array()) {
    Fail(key, absl::StrCat("a list of strings is needed here, not ", value->type_name()));
    return strings;
  }
  for (size_t i = 0; i < value->size(); ++i) {
    if ((*value)[i].is_string()) {
      strings.push_back((*value)[i].get<std::string>());
    } else {
      Fail(absl::StrCat(key, "[", i, "]"),
           absl::StrCat("a string is needed here, not ", (*value)[i].type_name()));
    }
  }
  return strings;
}

std::string ObjectReader::OneOf(const char* key, const std::vector<std::string>& known) {
  const std::string value = String(key);
  if (status_.ok() && std::find(known.begin(), known.end(), value) == known.end()) {
    Fail(key, absl::StrCat("unknown name '", value, "'", DidYouMean(value, known)));
  }
  return value;
}

absl::Status ObjectReader::Finish() {
  if (!status_.ok()) return status_;
  for (const auto& [key, value] : json_.items()) {
    if (!read_.contains(key)) {
      Keep(absl::InvalidArgumentError(
          absl::StrCat(origin_, ": ", path_, ": unknown key '", key, "'",
                       DidYouMean(key, std::vector<std::string>(read_.begin(), read_.end())))));
    }
  }
  return status_;
}

}  // namespace bkm
