// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.

#include "harness/base/json_facts.h"

#include <gtest/gtest.h>

#include <vector>

namespace bkm {
namespace {

const std::vector<Json>& EveryType() {
  static const auto& types = *new std::vector<Json>{
      nullptr, true,          1, -1, 1.5, uint64_t{18446744073709551615u}, "text", Json::array(),
      {1},     Json::object()};
  return types;
}

TEST(JsonFactsTest, AMemberOfAnotherTypeIsAbsent) {
  for (const Json& value : EveryType()) {
    const Json json = {{"key", value}};
    EXPECT_EQ(TextOf(json, "key", "?"), value.is_string() ? "text" : "?") << value;
    EXPECT_EQ(ListOf(json, "key").size(), value.is_array() ? value.size() : 0) << value;
    EXPECT_TRUE(ObjectOf(json, "key").is_object()) << value;
    EXPECT_EQ(FiniteOf(json, "key").has_value(), value.is_number()) << value;
    const bool fits = value.is_number_integer() && value.dump().size() <= 2;
    EXPECT_EQ(WholeOf(json, "key").has_value(), fits) << value;
    EXPECT_EQ(IsTrue(json, "key"), value == true) << value;
  }
}

TEST(JsonFactsTest, WhatIsNoObjectHasNoMembers) {
  for (const Json& value : EveryType()) {
    EXPECT_TRUE(MemberOf(value, "key").is_null()) << value;
    EXPECT_EQ(ItemOf(value, 0), value.is_array() && !value.empty() ? Json(1) : Json()) << value;
    EXPECT_TRUE(ItemOf(value, 1).is_null()) << value;
  }
}

}  // namespace
}  // namespace bkm
