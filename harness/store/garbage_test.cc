// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/store/garbage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/store/folder_cache.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using std::chrono::system_clock;
using ::testing::ElementsAre;

TEST(GarbageTest, RemovesUnusedFoldersOfItsKindsAndNothingElse) {
  const fs::path cache = *CreateTempDirectory(::testing::TempDir(), "garbage-");
  for (const char* kind : {"trees", "environments", "probes", "observations", "locks"}) {
    ASSERT_TRUE(FolderCache(cache / kind)
                    .GetOrMake("k", [](const fs::path& f) { return WriteFile(f / "a", ""); })
                    .ok());
  }
  EXPECT_THAT(*CollectGarbage(cache, system_clock::now() - hours(1)), ElementsAre());
  EXPECT_THAT(*CollectGarbage(cache, system_clock::now() + hours(1)),
              ElementsAre("environments/k", "observations/k", "probes/k", "trees/k"));
  EXPECT_FALSE(fs::exists(cache / "trees/k"));
  EXPECT_TRUE(fs::exists(cache / "locks/k/a"));
}

TEST(GarbageTest, KeptFileIsRemovedOnceNoTreeLinksToIt) {
  const fs::path cache = *CreateTempDirectory(::testing::TempDir(), "garbage-");
  ASSERT_TRUE(WriteFile(cache / "blobs/aa/used", "x").ok());
  ASSERT_TRUE(WriteFile(cache / "blobs/aa/unused", "y").ok());
  fs::create_hard_link(cache / "blobs/aa/used", cache / "name");
  ASSERT_TRUE(CollectGarbage(cache, system_clock::now() - hours(1)).ok());
  EXPECT_TRUE(fs::exists(cache / "blobs/aa/unused"));
  ASSERT_TRUE(CollectGarbage(cache, system_clock::now() + hours(1)).ok());
  EXPECT_FALSE(fs::exists(cache / "blobs/aa/unused"));
  EXPECT_TRUE(fs::exists(cache / "blobs/aa/used"));
}

TEST(GarbageTest, OldFoldersAreRemovedAndRecentOnesStay) {
  const fs::path cache = *CreateTempDirectory(::testing::TempDir(), "garbage-");
  ASSERT_TRUE(WriteFile(cache / "bytecode/1a/usr/os.pyc", "").ok());
  ASSERT_TRUE(WriteFile(cache / "checks/check-1/run.json", "{}").ok());
  ASSERT_TRUE(WriteFile(cache / "patches/torchtitan/index", "").ok());
  ASSERT_TRUE(WriteFile(cache / "tmp/uv/tree.lock", "").ok());
  EXPECT_THAT(*CollectGarbage(cache, system_clock::now() - hours(1)), ElementsAre());
  EXPECT_THAT(*CollectGarbage(cache, system_clock::now() + hours(1)),
              ElementsAre("bytecode/1a", "checks/check-1", "patches/torchtitan", "tmp/uv"));
  EXPECT_FALSE(fs::exists(cache / "checks/check-1"));
}

TEST(GarbageTest, EmptyCacheIsFine) {
  EXPECT_THAT(*CollectGarbage("/no/such/cache", system_clock::now()), ElementsAre());
}

}  // namespace
}  // namespace bkm
