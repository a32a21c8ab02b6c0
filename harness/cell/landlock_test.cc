// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/landlock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(LandlockTest, AVersionThatIsTooOldNamesTheProtectionThatItLacks) {
  EXPECT_THAT(MissingInLandlock(0), HasSubstr("does not offer Landlock"));
  for (const int version : {1, 2}) {
    EXPECT_THAT(MissingInLandlock(version), HasSubstr("emptying files"));
    EXPECT_THAT(MissingInLandlock(version), HasSubstr("abstract sockets"));
  }
  for (const int version : {3, 4, 5}) {
    EXPECT_THAT(MissingInLandlock(version), Not(HasSubstr("emptying files")));
    EXPECT_THAT(MissingInLandlock(version), HasSubstr("abstract sockets"));
  }
  for (const int version : {6, 7, 99}) EXPECT_EQ(MissingInLandlock(version), "");
}

}  // namespace
}  // namespace bkm
