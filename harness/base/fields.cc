// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/fields.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kMostReported = int64_t{1} << 50;

template <typename T>
void ReadNumbers(ObjectReader& reader, const char* key, absl::string_view needed,
                 bool (Json::*fits)() const noexcept, std::vector<T>& value) {
  const Json& items = *reader.Child(key);
  value.clear();
  if (!items.is_array())
    return reader.Fail(key, absl::StrCat("a list is needed here, not ", items.type_name()));
  for (size_t i = 0; i < items.size(); ++i) {
    const Json& item = items[i];
    const bool is_nan = std::is_same_v<T, double> && item.is_null();
    const bool overflows = std::is_integral_v<T> && item.is_number_unsigned() &&
                           item.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
    if (overflows)
      return reader.Fail(absl::StrCat(key, "[", i, "]"),
                         "a whole number below 2^63 is needed here");
    if (!is_nan && !(item.*fits)())
      return reader.Fail(absl::StrCat(key, "[", i, "]"),
                         absl::StrCat(needed, " is needed here, not ", item.type_name()));
    value.push_back(is_nan ? static_cast<T>(kNaN) : item.get<T>());
  }
}

}  // namespace

std::string Fields::PlaceOf(const char* key) const {
  return absl::StrCat(reader_->origin(), ": ", reader_->PathOf(key));
}

bool Fields::IsNull(const char* key) {
  const Json* value = reader_->Child(key);
  return !value || value->is_null();
}

void Fields::OneOf(const char* key, std::string& value, const std::vector<std::string>& known,
                   Presence presence) {
  if (!reading()) return Put(key, value, presence, {{"enum", known}});
  if (IsThere(key, presence)) value = reader_->OneOf(key, known);
}

absl::Status Fields::Finish() {
  if (style_ == FieldStyle::kSparse && json_->is_object()) {
    for (const auto& member : json_->items()) reader_->Child(member.key().c_str());
  }
  return reader_->Finish();
}

void Fields::PutShape(const char* key, Presence presence, OrderedJson shape) {
  // An absent value is left out, never null.
  if (presence == Presence::kOmitted) shape.erase("nullable");
  (*shape_)["properties"][key] = std::move(shape);
  if (presence != Presence::kOmitted) (*shape_)["written"].push_back(key);
  if (presence == Presence::kRequired) (*shape_)["required"].push_back(key);
}

void Fields::PutValue(const char* key, Presence presence, bool is_empty, OrderedJson value) {
  const bool omits = presence == Presence::kOmitted || style_ == FieldStyle::kSparse;
  if (!omits || !is_empty) (*written_)[key] = std::move(value);
}

bool Fields::IsThere(const char* key, Presence presence, bool null_is_value) {
  const Json* value = reader_->Child(key);
  if (style_ == FieldStyle::kSparse) return value && (null_is_value || !value->is_null());
  // String() has the message for a missing key.
  if (!value && presence == Presence::kRequired) reader_->String(key);
  return value != nullptr;
}

std::optional<size_t> Fields::ReadName(const char* key, const std::vector<std::string>& known) {
  if (!IsThere(key, Presence::kRequired)) return std::nullopt;
  const std::string name =
      style_ == FieldStyle::kStrict ? reader_->OneOf(key, known) : reader_->String(key);
  const auto it = std::find(known.begin(), known.end(), name);
  if (it != known.end()) return it - known.begin();
  if (!name.empty()) reader_->Fail(key, absl::StrCat("unknown name '", name, "'"));
  return std::nullopt;
}

void Fields::Group(const char* key, const std::function<void(Fields&)>& describe) {
  if (reading()) {
    if (IsThere(key, Presence::kRequired)) ReadObject(key, describe);
    return;
  }
  Shape shape;
  OrderedJson json = OrderedJson::object();
  Fields fields = shape_ ? Fields(shape) : Fields(json, style_);
  describe(fields);
  if (shape_) return PutShape(key, Presence::kRequired, std::move(shape.json));
  const bool is_empty = json.empty();
  PutValue(key, Presence::kRequired, is_empty, std::move(json));
}

void Fields::ReadObject(const char* key, const std::function<void(Fields&)>& describe) {
  Fields fields(*reader_->Child(key), reader_->origin(), reader_->PathOf(key), style_);
  describe(fields);
  reader_->Keep(fields.Finish());
}

void Fields::ReadMembers(const char* key,
                         const std::function<void(Fields&, const std::string& name)>& describe) {
  const Json& members = *reader_->Child(key);
  ReadObject(key, [&](Fields& fields) {
    if (!members.is_object()) return;
    for (const auto& member : members.items()) describe(fields, member.key());
  });
}

void Fields::ReadLeaf(const char* key, double& value) {
  const bool is_nan = style_ == FieldStyle::kSparse && reader_->Child(key)->is_null();
  value = is_nan ? kNaN : reader_->Number(key, value);
}

void Fields::ReadLeaf(const char* key, int64_t& value) {
  // What others report stays so small that sums of it do not overflow.
  const int64_t most = style_ == FieldStyle::kSparse ? kMostReported : INT64_MAX;
  value = reader_->Int(key, value, style_ == FieldStyle::kSparse ? -most : INT64_MIN, most);
}

void Fields::ReadLeaf(const char* key, std::vector<std::string>& value) {
  value = reader_->Strings(key, value);
}

void Fields::ReadLeaf(const char* key, std::vector<int64_t>& value) {
  ReadNumbers(*reader_, key, "a whole number", &Json::is_number_integer, value);
}

void Fields::ReadLeaf(const char* key, std::vector<double>& value) {
  ReadNumbers(*reader_, key, "a number", &Json::is_number, value);
}

}  // namespace bkm
