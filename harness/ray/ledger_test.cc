// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/ray/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Over = Ledger::Over;

constexpr absl::Duration kStart = absl::ZeroDuration();

class LedgerTest : public ::testing::Test {
 protected:
  Ledger ledger_{{.lease = absl::Seconds(10), .most_tries = 2}};
};

TEST_F(LedgerTest, ASignOfLifeRenewsEveryLeaseOfItsWorkerAndNoOther) {
  const int64_t a = ledger_.Add(), b = ledger_.Add();
  ledger_.Grant(a, /*worker=*/1, kStart);
  const int64_t of_b = ledger_.Grant(b, /*worker=*/2, kStart);
  ledger_.Renew(1, absl::Seconds(9));
  EXPECT_THAT(ledger_.Expire(absl::Seconds(9)), IsEmpty());
  EXPECT_THAT(ledger_.Expire(absl::Seconds(10)), ElementsAre(Over{b, of_b, 2, false}));
  EXPECT_THAT(ledger_.Expire(absl::Seconds(11)), IsEmpty()) << "told once";
}

TEST_F(LedgerTest, TheLastTryIsTold) {
  const int64_t cell = ledger_.Add();
  ledger_.Grant(cell, 1, kStart);
  ledger_.Expire(absl::Seconds(10));
  const int64_t second = ledger_.Grant(cell, 2, absl::Seconds(10));
  EXPECT_THAT(ledger_.EndWorker(2), ElementsAre(Over{cell, second, 2, true}));
}

TEST_F(LedgerTest, TheFirstResultCountsAndLaterOnesAreLate) {
  const int64_t cell = ledger_.Add();
  const int64_t first = ledger_.Grant(cell, 1, kStart);
  ledger_.Expire(absl::Seconds(10));
  const int64_t second = ledger_.Grant(cell, 2, absl::Seconds(10));
  // The worker that was given up answers first.
  EXPECT_EQ(ledger_.Take(first).kind, Ledger::Kind::kFirst);
  EXPECT_TRUE(ledger_.IsOpen(cell));
  const Ledger::Answer late = ledger_.Take(second);
  EXPECT_EQ(late.kind, Ledger::Kind::kLate);
  EXPECT_EQ(late.cell, cell);
  EXPECT_FALSE(ledger_.IsOpen(cell));
  EXPECT_EQ(ledger_.Take(second).kind, Ledger::Kind::kUnknown) << "one answer per lease";
}

TEST_F(LedgerTest, ACellThatHasEndedIsNotSentAgain) {
  const int64_t cell = ledger_.Add();
  const int64_t first = ledger_.Grant(cell, 1, kStart);
  ledger_.Expire(absl::Seconds(10));
  ledger_.Grant(cell, 2, absl::Seconds(10));
  ledger_.Take(first);
  EXPECT_THAT(ledger_.Expire(absl::Seconds(30)), IsEmpty());
  EXPECT_THAT(ledger_.EndWorker(2), IsEmpty());
}

TEST_F(LedgerTest, AnExpiredLeaseWhoseWorkerThenDiesIsNoSecondLoss) {
  const int64_t cell = ledger_.Add();
  ledger_.Grant(cell, 1, kStart);
  EXPECT_EQ(ledger_.Expire(absl::Seconds(10)).size(), 1u);
  EXPECT_THAT(ledger_.EndWorker(1), IsEmpty());
  EXPECT_TRUE(ledger_.IsOpen(cell));
}

TEST_F(LedgerTest, ABoundEndsALeaseThatIsStillRenewed) {
  const int64_t cell = ledger_.Add();
  const int64_t lease = ledger_.Grant(cell, 1, kStart);
  ledger_.Bound(lease, absl::Seconds(15));
  ledger_.Renew(1, absl::Seconds(14));
  EXPECT_THAT(ledger_.Expire(absl::Seconds(14)), IsEmpty());
  EXPECT_EQ(ledger_.Expire(absl::Seconds(15)).size(), 1u);
}

TEST_F(LedgerTest, AWithdrawnTryDoesNotCount) {
  const int64_t cell = ledger_.Add();
  for (int i = 0; i < 5; ++i) ledger_.Withdraw(ledger_.Grant(cell, 1, kStart));
  const int64_t lease = ledger_.Grant(cell, 1, kStart);
  EXPECT_THAT(ledger_.EndWorker(1), ElementsAre(Over{cell, lease, 1, false}));
}

TEST_F(LedgerTest, NothingIsKeptOfCellsThatHaveEnded) {
  for (int i = 0; i < 1000; ++i) {
    const int64_t cell = ledger_.Add();
    const int64_t lease = ledger_.Grant(cell, 1, kStart);
    if (i % 2 == 0) {
      ledger_.Take(lease);
    } else {
      ledger_.GiveUp(cell);
      ledger_.EndWorker(1);
    }
    EXPECT_FALSE(ledger_.IsOpen(cell));
  }
  EXPECT_EQ(ledger_.open_leases(), 0u);
}

}  // namespace
}  // namespace bkm
