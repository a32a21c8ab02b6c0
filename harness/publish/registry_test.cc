// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(RegistryTest, YankedPinsAreReadFromWhatUvWarnsOf) {
  EXPECT_THAT(YankedIn("Resolved 2 packages in 62ms\n"
                       "warning: `attrs==21.1.0` is yanked (reason: \"Not \"importable\".\")\n"
                       "warning: `b==1` is yanked\n"),
              ElementsAre(Pair("attrs==21.1.0", "Not \"importable\"."), Pair("b==1", "no reason")));
}

}  // namespace
}  // namespace bkm
