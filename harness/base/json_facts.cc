// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.

#include "harness/base/json_facts.h"

#include <cmath>

namespace bkm {
namespace {

const Json& Null() {
  static const Json& null = *new Json();
  return null;
}

}  // namespace

const Json& MemberOf(const Json& json, absl::string_view key) {
  if (!json.is_object()) return Null();
  const auto member = json.find(std::string(key));
  return member == json.end() ? Null() : *member;
}

const Json& ItemOf(const Json& json, size_t index) {
  return json.is_array() && index < json.size() ? json[index] : Null();
}

const Json& ListOf(const Json& json, absl::string_view key) {
  static const Json& empty = *new Json(Json::array());
  const Json& member = MemberOf(json, key);
  return member.is_array() ? member : empty;
}

const Json& ObjectOf(const Json& json, absl::string_view key) {
  static const Json& empty = *new Json(Json::object());
  const Json& member = MemberOf(json, key);
  return member.is_object() ? member : empty;
}

std::string TextOf(const Json& json, absl::string_view key, absl::string_view otherwise) {
  const Json& member = MemberOf(json, key);
  return member.is_string() ? member.get<std::string>() : std::string(otherwise);
}

std::optional<double> FiniteOf(const Json& json, absl::string_view key) {
  const Json& member = MemberOf(json, key);
  if (!member.is_number()) return std::nullopt;
  const double number = member.get<double>();
  return std::isfinite(number) ? std::optional<double>(number) : std::nullopt;
}

std::optional<int64_t> WholeOf(const Json& json, absl::string_view key) {
  const Json& member = MemberOf(json, key);
  if (!member.is_number_integer()) return std::nullopt;
  if (member.is_number_unsigned() && member.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    return std::nullopt;
  return member.get<int64_t>();
}

bool IsTrue(const Json& json, absl::string_view key) {
  const Json& member = MemberOf(json, key);
  return member.is_boolean() && member.get<bool>();
}

}  // namespace bkm
