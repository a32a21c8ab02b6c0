// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/store/folder_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using std::chrono::system_clock;
using ::testing::ElementsAre;

class FolderCacheTest : public ::testing::Test {
 protected:
  FolderCacheTest() : cache_(*CreateTempDirectory(::testing::TempDir(), "cache-")) {}
  void Make(const std::string& key) {
    ASSERT_TRUE(
        cache_.GetOrMake(key, [](const fs::path& f) { return WriteFile(f / "a", "x"); }).ok());
  }
  FolderCache cache_;
};

TEST_F(FolderCacheTest, FillsOnceAndReuses) {
  Make("k");
  const auto again =
      cache_.GetOrMake("k", [](const fs::path&) { return absl::InternalError("made again"); });
  EXPECT_EQ(*again, cache_.root() / "k");
  EXPECT_EQ(*ReadFile(*again / "a"), "x");
}

TEST_F(FolderCacheTest, FailureIsReturnedAndKeepsNothing) {
  const auto failed = cache_.GetOrMake("k", [](const fs::path& folder) {
    WriteFile(folder / "half", "").IgnoreError();
    return absl::UnavailableError("no network");
  });
  EXPECT_EQ(failed.status(), absl::UnavailableError("no network"));
  EXPECT_FALSE(fs::exists(cache_.root() / "k"));
  EXPECT_EQ(cache_.Get("k"), std::nullopt);
}

TEST_F(FolderCacheTest, FolderWithoutMarkerIsEmptiedAndFilledAgain) {
  ASSERT_TRUE(WriteFile(cache_.root() / "k" / "left-by-a-killed-process", "").ok());
  EXPECT_EQ(cache_.Get("k"), std::nullopt);
  Make("k");
  EXPECT_FALSE(fs::exists(cache_.root() / "k" / "left-by-a-killed-process"));
}

TEST_F(FolderCacheTest, OneCallerFillsAndTheOthersWait) {
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto folder = cache_.GetOrMake("k", [&](const fs::path& f) {
        ++made;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return WriteFile(f / "a", "x");
      });
      EXPECT_EQ(*ReadFile(*folder / "a"), "x");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
}

TEST_F(FolderCacheTest, DamagedFolderOfACheckedCacheIsSetAsideReportedAndMadeAgain) {
  const fs::path root = cache_.root() / "checked";
  std::vector<std::string> reports;
  const auto report = [&](const std::string& text) { reports.push_back(text); };
  const auto make = [](const fs::path& folder) {
    return WriteScratchFile(folder / "deep" / "a", "good");
  };
  ASSERT_TRUE(FolderCache(root, report).GetOrMake("k", make).ok());
  ASSERT_TRUE(FolderCache(root, report).Get("k").has_value());
  ASSERT_TRUE(WriteScratchFile(root / "k" / "deep" / "a", "gooe").ok());

  const auto again = FolderCache(root, report).GetOrMake("k", make);

  EXPECT_EQ(*ReadFile(*again / "deep" / "a"), "good");
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_THAT(reports[0],
              ::testing::HasSubstr((root / "k/deep/a").string() +
                                   " is damaged: its content has changed: making it again"));
  EXPECT_EQ(FolderCache(root).Get("k"), root / "k") << "it is used without checks, too";
}

TEST_F(FolderCacheTest, FolderOfAnOlderVersionHasNoManifestAndIsUsed) {
  Make("k");
  const FolderCache checked(cache_.root(), [](const std::string& text) { FAIL() << text; });
  EXPECT_TRUE(checked.Get("k").has_value());
}

TEST_F(FolderCacheTest, CollectRemovesOnlyFoldersUnusedSince) {
  Make("old");
  Make("used");
  fs::last_write_time(cache_.root() / ".old.complete",
                      fs::file_time_type::clock::now() - hours(48));
  fs::last_write_time(cache_.root() / ".used.complete",
                      fs::file_time_type::clock::now() - hours(48));
  ASSERT_TRUE(cache_.Get("used").has_value());
  EXPECT_THAT(*cache_.Collect(system_clock::now() - hours(24)), ElementsAre("old"));
  EXPECT_EQ(cache_.Get("old"), std::nullopt);
  EXPECT_TRUE(cache_.Get("used").has_value());
}

TEST_F(FolderCacheTest, CollectLeavesAFolderThatIsBeingFilled) {
  const auto folder = cache_.GetOrMake("k", [&](const fs::path& f) {
    EXPECT_THAT(*cache_.Collect(system_clock::now() + hours(1)), ElementsAre());
    return WriteFile(f / "a", "x");
  });
  EXPECT_TRUE(fs::exists(*folder / "a"));
}

}  // namespace
}  // namespace bkm
