// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/ray/resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

TEST(RayResourcesTest, ReadsRaysNamesAndUnitsOfMemory) {
  EXPECT_EQ(*ParseRayResources("CPU=2,memory=4GiB,big=0.5"),
            (RayResources{{"CPU", 2}, {"memory", 4.0 * (1 << 30)}, {"big", 0.5}}));
  EXPECT_EQ(*ParseRayResources("memory=512MiB"), (RayResources{{"memory", 512.0 * (1 << 20)}}));
  EXPECT_EQ(*ParseRayResources(""), RayResources());
}

TEST(RayResourcesTest, RefusesWhatIsNoAmount) {
  for (const char* text : {"CPU", "CPU=", "=2", "CPU=-1", "CPU=2GiB", "CPU=nan", "memory=4TB"}) {
    EXPECT_EQ(ParseRayResources(text).status().message(),
              std::string("'") + text + "' is not a resource such as CPU=2, memory=4GiB or GPU=1");
  }
  EXPECT_EQ(ParseRayResources("CPU=1,CPU=2").status().message(), "resource 'CPU' is there twice");
}

TEST(RayResourcesTest, ReadsLabels) {
  EXPECT_EQ(*ParseRayLabels("zone=a,kind=spot"),
            (std::map<std::string, std::string>{{"zone", "a"}, {"kind", "spot"}}));
  EXPECT_EQ(ParseRayLabels("zone").status().message(), "'zone' is not a label such as zone=a");
}

TEST(RayResourcesTest, TheScarcestResourceSaysHowManyCellsFit) {
  const RayResources node = {{"CPU", 8}, {"memory", 10}};
  EXPECT_EQ(CellsThatFit({{"CPU", 2}, {"memory", 4}}, node), 2);
  EXPECT_EQ(CellsThatFit({{"CPU", 2}, {"GPU", 1}}, node), 0);
  EXPECT_EQ(CellsThatFit({{"CPU", 3}, {"GPU", 0}}, node), 2);
}

TEST(RayResourcesTest, TextIsForPeople) {
  EXPECT_EQ(RayResourcesText({{"CPU", 2}, {"memory", 1.5 * (1 << 30)}}), "CPU 2, memory 1.5 GiB");
}

}  // namespace
}  // namespace bkm
