// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_JSON_FACTS_H_
#define HARNESS_BASE_JSON_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "harness/base/json.h"

// Reads facts out of JSON that others wrote. A member that is missing or has another type counts as
// absent, while Json::value() throws on a wrong type. None of these copies a structure.
namespace bkm {

// The member, or null. Lives as long as `json`.
const Json& MemberOf(const Json& json, absl::string_view key);
// The item, or null.
const Json& ItemOf(const Json& json, size_t index);
// The member if it is a list, else an empty list; the same for objects.
const Json& ListOf(const Json& json, absl::string_view key);
const Json& ObjectOf(const Json& json, absl::string_view key);
std::string TextOf(const Json& json, absl::string_view key, absl::string_view otherwise = "");
std::optional<double> FiniteOf(const Json& json, absl::string_view key);
// A whole number that fits into an int64_t.
std::optional<int64_t> WholeOf(const Json& json, absl::string_view key);
bool IsTrue(const Json& json, absl::string_view key);

}  // namespace bkm

#endif  // HARNESS_BASE_JSON_FACTS_H_
