// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/symbol_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class SymbolStoreTest : public ::testing::Test {
 protected:
  SymbolStoreTest() : path_(*CreateTempDirectory(::testing::TempDir(), "symbols-") / "1.sqlite") {}
  fs::path path_;
};

TEST_F(SymbolStoreTest, ScannedFilesOutliveTheObjectAndAreReplaced) {
  {
    SymbolStore store = *SymbolStore::Open(path_);
    ASSERT_TRUE(store.Put({{"a", "table", ""}, {"b", "other", "body"}}).ok());
    ASSERT_TRUE(store.Put({{"a", "new table", "new body"}}).ok());
  }
  const SymbolStore store = *SymbolStore::Open(path_);
  EXPECT_THAT(*store.Blobs(), UnorderedElementsAre("a", "b"));
  EXPECT_EQ(*store.Table("a"), "new table");
  EXPECT_EQ(*store.Bodies("a"), "new body");
  EXPECT_EQ(*store.Table("c"), std::nullopt);
}

TEST_F(SymbolStoreTest, DamagedFileIsSetAsideAndScannedAgain) {
  ASSERT_TRUE(WriteFile(path_, std::string(8192, 'x')).ok());
  const absl::StatusOr<SymbolStore> store = SymbolStore::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_THAT(*store->Blobs(), IsEmpty());
  int damaged = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path_.parent_path()))
    damaged += entry.path().string().find(".damaged-") != std::string::npos;
  EXPECT_EQ(damaged, 1);
}

TEST_F(SymbolStoreTest, DatabaseOfAnotherProgramIsDataLossWithAdvice) {
  {
    const Database other = *Database::Open({path_, "", std::chrono::milliseconds(10)});
    ASSERT_TRUE(other.Execute("CREATE TABLE files(name TEXT)").ok());
  }
  const absl::Status status = SymbolStore::Open(path_)->Table("a").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the next check scans everything again"));
}

}  // namespace
}  // namespace bkm
