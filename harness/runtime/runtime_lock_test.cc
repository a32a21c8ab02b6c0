// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runtime/runtime_lock.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

RuntimeLock Example() {
  return {.runtime = "cpu",
          .policy = "as-of",
          .python = "3.11",
          .cutoff = "2026-04-01T00:00:00Z",
          .exempt = {"torch"},
          .torch_backend = "cpu",
          .requirements = {"numpy<2", "torch==2.13.0+cpu"},
          .relaxed = {"transformers"},
          .packages = {{"numpy", "1.26.4", {"aa"}}, {"torch", "2.13.0+cpu", {"bb", "cc"}}}};
}

TEST(RuntimeLockTest, JsonKeepsEverything) {
  EXPECT_EQ(*RuntimeLockFromJson(ToJson(Example()), "lock.json"), Example());
}

TEST(RuntimeLockTest, KeyDependsOnPackagesAndPythonAlone) {
  RuntimeLock other = Example();
  other.runtime = "nightly";
  other.policy = "newest";
  other.cutoff = "";
  other.requirements = {"numpy"};
  EXPECT_EQ(other.Key(), Example().Key());
  other.packages[0].sha256 = {"dd"};
  EXPECT_NE(other.Key(), Example().Key());
  other = Example();
  other.python = "3.12";
  EXPECT_NE(other.Key(), Example().Key());
}

TEST(RuntimeLockTest, RequirementsTextNamesVersionsAndHashesOnly) {
  EXPECT_EQ(Example().RequirementsText(),
            "numpy==1.26.4 --hash=sha256:aa\n"
            "torch==2.13.0+cpu --hash=sha256:bb --hash=sha256:cc\n");
}

TEST(RuntimeLockTest, VersionOfAnAbsentPackageIsEmpty) {
  EXPECT_EQ(Example().VersionOf("torch"), "2.13.0+cpu");
  EXPECT_EQ(Example().VersionOf("tor"), "");
}

}  // namespace
}  // namespace bkm
