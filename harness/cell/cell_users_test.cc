// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/cell_users.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace bkm {
namespace {

TEST(CellUsersTest, AMapContainsTheNumbersOfItsLines) {
  EXPECT_TRUE(MapContains("0 0 4294967295\n", 2000000000, 65));
  EXPECT_TRUE(MapContains("0 1000 1\n1 100000 65536\n", 65530, 2));
  EXPECT_FALSE(MapContains("0 1000 1\n1 100000 65536\n", 65536, 2)) << "half of it";
  EXPECT_FALSE(MapContains("0 1000 1\n", 65533, 1));
  EXPECT_FALSE(MapContains("", 0, 1));
}

TEST(CellUsersTest, EachSlotHasAUserAndTheWorkerAnotherOne) {
  const CellUsers users = {
      .other = true, .worker_outside = 2000000000, .first_cell_outside = 2000000065, .count = 64};

  EXPECT_EQ(users.CellOutside(0), 2000000065u);
  EXPECT_EQ(users.CellOutside(3), 2000000068u);
  EXPECT_EQ(users.CellOutside(64), users.CellOutside(0));
  EXPECT_EQ(users.CellInside(0), 1000u);
  EXPECT_EQ(users.UserMap(), "999 2000000000 1\n1000 2000000065 64\n");
  EXPECT_EQ(users.GroupMap(), users.UserMap());
}

TEST(CellUsersTest, WithoutRootAllAreTheUser) {
  const CellUsers users = {.worker_outside = 1234, .first_cell_outside = 1234, .group_outside = 7};

  EXPECT_EQ(users.CellOutside(2), 1234u);
  EXPECT_EQ(users.CellInside(2), CellUsers::kFirstInside);
  EXPECT_EQ(users.UserMap(), "999 1234 1\n");
  EXPECT_EQ(users.GroupMap(), "999 7 1\n");
}

TEST(CellUsersTest, NobodyRunsACellAsRoot) {
  const absl::StatusOr<CellUsers> users = ChooseCellUsers();
  if (!users.ok()) GTEST_SKIP() << users.status().message();
  if (::geteuid() != 0) {
    EXPECT_EQ(users->CellOutside(0), ::geteuid());
    return;
  }
  EXPECT_TRUE(!users->other || users->CellOutside(0) > 0);
  EXPECT_TRUE(!users->other || users->worker_outside != users->CellOutside(0));
}

}  // namespace
}  // namespace bkm
