// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/history/peel_sight.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

TEST(StableTextTest, DropsFreeNumbersAndListsAndKeepsNames) {
  EXPECT_EQ(StableText("f() takes 3 positional arguments but 12 were given"),
            "f() takes # positional arguments but # were given");
  EXPECT_EQ(StableText("no 'qwen3' in ['llama3', ['x']] or {1: 2}"), "no 'qwen3' in  or ");
  EXPECT_EQ(StableText("<object at 0x7f3a>, layer_2 and v2"), "<object at #>, layer_2 and v2");
}

}  // namespace
}  // namespace bkm
