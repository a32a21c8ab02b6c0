// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_FIELDS_H_
#define HARNESS_BASE_FIELDS_H_

#include <concepts>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/check.h"
#include "harness/base/json.h"

namespace bkm {

enum class Presence {
  kRequired,  // always written; a missing key is an error
  kOptional,  // always written; a missing key leaves the default
  kOmitted,   // written unless empty or zero; a missing key leaves the default
};

enum class FieldStyle {
  kStrict,  // unknown keys are errors
  // Unknown keys are ignored, every field is kOmitted, and null means missing or, for a double,
  // NaN.
  kSparse,
};

// Visits the fields of a struct in order, to read them, to write them, or to list their shapes for
// a comparison with a JSON schema. A struct names its fields once, for all three:
//   void Describe(Fields& fields, Version& version) { fields.Field("label", version.label); }
// Describe is declared beside the struct, in its namespace.
// A field is a bool, an integer, a double, a std::string, Json, a struct with a Describe, or a
// vector, an optional (null where absent) or a map by name of these. The header is long because its
// templates dispatch on these types.
class Fields {
 public:
  struct Shape {
    // "properties", "written" and "required" keys; "items"; "type", "enum", "nullable".
    OrderedJson json;
  };
  // Reads from `json`, which must outlive this.
  Fields(const Json& json, const std::string& origin, const std::string& path, FieldStyle style)
      : json_(&json), reader_(std::in_place, json, origin, path), style_(style) {}
  Fields(OrderedJson& written, FieldStyle style) : written_(&written), style_(style) {}
  explicit Fields(Shape& shape) : shape_(&shape.json) {}

  bool reading() const { return reader_.has_value(); }

  template <typename T>
  void Field(const char* key, T& value, Presence presence = Presence::kRequired) {
    if (!reading()) return Put(key, value, presence);
    if (IsThere(key, presence, IsDouble<T>())) Read(key, value);
  }
  // A whole number in a range.
  template <std::integral T>
  void Int(const char* key, T& value, int64_t min, int64_t max,
           Presence presence = Presence::kRequired) {
    if (!reading())
      return Put(key, value, presence, {{"type", "integer"}, {"minimum", min}, {"maximum", max}});
    if (IsThere(key, presence)) value = static_cast<T>(reader_->Int(key, value, min, max));
  }
  // An enumerator: its name is the one at its place in `names`.
  template <typename Enum, typename Names>
  void Name(const char* key, Enum& value, const Names& names) {
    const std::vector<std::string> known(std::begin(names), std::end(names));
    if (!reading()) {
      HARNESS_CHECK(static_cast<size_t>(value) < known.size()) << key << " has no name";
      return Put(key, known[static_cast<size_t>(value)], Presence::kRequired, {{"enum", known}});
    }
    if (const std::optional<size_t> place = ReadName(key, known)) value = static_cast<Enum>(*place);
  }
  // A string out of a closed set.
  void OneOf(const char* key, std::string& value, const std::vector<std::string>& known,
             Presence presence = Presence::kRequired);
  // Fields of the same struct that lie in an object of their own.
  void Group(const char* key, const std::function<void(Fields&)>& describe);
  // A value that other fields determine: written, and ignored when read.
  template <typename T>
  void Derived(const char* key, const T& value) {
    reading() ? void(reader_->Child(key)) : Put(key, value, Presence::kOptional);
  }

  // A key that may be there and says nothing more.
  void Ignore(const char* key) { reading() ? void(reader_->Child(key)) : void(); }

  // For rules beyond the types; only while reading. Place: "run.json: $.cells[0].probe".
  std::string PlaceOf(const char* key) const;
  bool IsNull(const char* key);
  void Fail(const char* key, absl::string_view message) { reader_->Fail(key, message); }
  void Keep(const absl::Status& status) { reader_->Keep(status); }
  // The first error.
  absl::Status Finish();

 private:
  template <typename T>
  static constexpr bool IsDouble() {
    return std::is_same_v<T, double> || std::is_same_v<T, std::optional<double>>;
  }
  template <typename T>
  static bool IsEmpty(const T& value) {
    if constexpr (std::is_arithmetic_v<T>) return value == T();
    if constexpr (requires { value.has_value(); }) return !value.has_value();
    if constexpr (requires { value.empty(); }) return value.empty();
    return false;
  }

  template <typename T>
  void Put(const char* key, T& value, Presence presence) {
    shape_ ? PutShape(key, presence, ShapeOf<std::remove_const_t<T>>())
           : PutValue(key, presence, IsEmpty(value), ValueOf(value));
  }
  template <typename T>
  void Put(const char* key, const T& value, Presence presence, OrderedJson shape) {
    shape_ ? PutShape(key, presence, std::move(shape))
           : PutValue(key, presence, IsEmpty(value), value);
  }

  template <typename T>
  OrderedJson ValueOf(T& value) {
    if constexpr (requires(Fields & fields) { Describe(fields, value); }) {
      OrderedJson json = OrderedJson::object();
      Fields fields(json, style_);
      Describe(fields, value);
      return json;
    } else if constexpr (requires { value.has_value(); }) {
      return value ? ValueOf(*value) : OrderedJson();
    } else if constexpr (requires { value.emplace_back(); } && !std::is_same_v<T, Json>) {
      OrderedJson json = OrderedJson::array();
      for (auto& item : value) json.push_back(ValueOf(item));
      return json;
    } else if constexpr (requires { typename T::mapped_type; }) {
      OrderedJson json = OrderedJson::object();
      for (auto& [name, item] : value) json[name] = ValueOf(item);
      return json;
    } else {
      return OrderedJson(value);
    }
  }

  template <typename T>
  static OrderedJson ShapeOf() {
    if constexpr (requires(Fields & fields, T & value) { Describe(fields, value); }) {
      Shape shape;
      T value = {};
      Fields fields(shape);
      Describe(fields, value);
      return shape.json;
    } else if constexpr (std::is_same_v<T, bool>) {
      return {{"type", "boolean"}};
    } else if constexpr (std::is_arithmetic_v<T>) {
      return {{"type", std::is_integral_v<T> ? "integer" : "number"}};
    } else if constexpr (requires(T & value) { value.has_value(); }) {
      OrderedJson shape = ShapeOf<typename T::value_type>();
      shape["nullable"] = true;
      return shape;
    } else if constexpr (std::is_same_v<T, Json>) {
      return OrderedJson::object();
    } else if constexpr (std::is_convertible_v<T, std::string>) {
      return {{"type", "string"}};
    } else if constexpr (requires { typename T::mapped_type; }) {
      return {{"type", "object"}};
    } else {
      return {{"type", "array"}, {"items", ShapeOf<typename T::value_type>()}};
    }
  }

  template <typename T>
  void Read(const char* key, T& value) {
    if constexpr (requires(Fields & fields) { Describe(fields, value); }) {
      ReadObject(key, [&](Fields& fields) { Describe(fields, value); });
    } else if constexpr (requires { value.has_value(); }) {
      const bool is_absent = reader_->Child(key)->is_null() && style_ == FieldStyle::kStrict;
      if (!is_absent) Read(key, value.emplace());
    } else if constexpr (requires { typename T::mapped_type; } && !std::is_same_v<T, Json>) {
      ReadMembers(key, [&](Fields& fields, const std::string& name) {
        fields.Field(name.c_str(), value[name]);
      });
    } else if constexpr (requires(Fields & fields) { Describe(fields, value.emplace_back()); }) {
      value.clear();
      reader_->ForEach(key, [&](const Json& item, const std::string& path) {
        Fields fields(item, reader_->origin(), path, style_);
        Describe(fields, value.emplace_back());
        return fields.Finish();
      });
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      int64_t number = value;
      ReadLeaf(key, number);
      value = static_cast<T>(number);
    } else {
      ReadLeaf(key, value);
    }
  }
  void ReadLeaf(const char* key, bool& value) { value = reader_->Bool(key, value); }
  void ReadLeaf(const char* key, double& value);
  void ReadLeaf(const char* key, int64_t& value);
  void ReadLeaf(const char* key, std::string& value) { value = reader_->String(key); }
  void ReadLeaf(const char* key, Json& value) { value = *reader_->Child(key); }
  void ReadLeaf(const char* key, std::vector<std::string>& value);
  void ReadLeaf(const char* key, std::vector<int64_t>& value);
  void ReadLeaf(const char* key, std::vector<double>& value);

  void PutShape(const char* key, Presence presence, OrderedJson shape);
  void PutValue(const char* key, Presence presence, bool is_empty, OrderedJson value);
  bool IsThere(const char* key, Presence presence, bool null_is_value = false);
  std::optional<size_t> ReadName(const char* key, const std::vector<std::string>& known);
  void ReadObject(const char* key, const std::function<void(Fields&)>& describe);
  void ReadMembers(const char* key,
                   const std::function<void(Fields&, const std::string& name)>& describe);

  const Json* json_ = nullptr;
  std::optional<ObjectReader> reader_;
  OrderedJson* written_ = nullptr;
  OrderedJson* shape_ = nullptr;
  FieldStyle style_ = FieldStyle::kStrict;
};

template <typename T>
absl::StatusOr<T> ReadFields(const Json& json, const std::string& origin,
                             FieldStyle style = FieldStyle::kStrict) {
  T value = {};
  Fields fields(json, origin, "$", style);
  Describe(fields, value);
  if (absl::Status status = fields.Finish(); !status.ok()) return status;
  return value;
}

template <typename T>
OrderedJson WriteFields(T value, FieldStyle style = FieldStyle::kStrict) {
  OrderedJson json = OrderedJson::object();
  Fields fields(json, style);
  Describe(fields, value);
  return json;
}

}  // namespace bkm

#endif  // HARNESS_BASE_FIELDS_H_
