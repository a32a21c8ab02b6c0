// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/mask_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kThreeDocuments[] = {4, 12, 6};
const PackedDocuments& Documents() {
  static const auto& documents = *new PackedDocuments(kThreeDocuments);
  return documents;
}

Relation Right(int64_t window = 0) { return RightRelation(Documents(), window); }

Relation RightFor(std::vector<int64_t> lengths, int64_t window = 0) {
  return RightRelation(PackedDocuments(lengths), window);
}

Relation Everything() {
  Relation relation(Documents().tokens());
  for (int64_t query = 0; query < relation.tokens(); ++query) {
    for (int64_t key = 0; key < relation.tokens(); ++key) relation.Set(query, key, true);
  }
  return relation;
}

TEST(MaskDifferenceTest, RightRelationHasNone) {
  EXPECT_EQ(Compare(Right(), Documents(), 0).fault, MaskFault::kNone);
  EXPECT_EQ(Compare(Right(5), Documents(), 5).fault, MaskFault::kNone);
  EXPECT_EQ(Compare(Right(), Documents(), 12).fault, MaskFault::kNone)
      << "a window that no document is longer than cannot be seen";
}

TEST(MaskDifferenceTest, CausalOverAllDocumentsSeesOtherDocuments) {
  const MaskDifference difference = Compare(RightFor({22}), Documents(), 0);
  EXPECT_EQ(difference.fault, MaskFault::kOtherDocument);
  EXPECT_FALSE(difference.is_mutual);
  EXPECT_EQ(difference.example,
            "token 4 (document 1, position 0) sees token 3 (document 0, position 3)");
  EXPECT_EQ(difference.extra, 12 * 4 + 6 * 16);
  EXPECT_EQ(difference.missing, 0);
}

TEST(MaskDifferenceTest, EverythingSeesLaterDocumentsToo) {
  const MaskDifference difference = Compare(Everything(), Documents(), 0);
  EXPECT_EQ(difference.fault, MaskFault::kOtherDocument);
  EXPECT_TRUE(difference.is_mutual);
}

// As in a row of a trainer that takes the documents in another order.
TEST(MaskDifferenceTest, DocumentsThatSeeLaterOnesOnlyAreNotMutual) {
  Relation seen = Right();
  seen.Set(0, 10, true);
  const MaskDifference difference = Compare(seen, Documents(), 0);
  EXPECT_EQ(difference.fault, MaskFault::kOtherDocument);
  EXPECT_FALSE(difference.is_mutual);
}

TEST(MaskDifferenceTest, LaterTokensOfTheOwnDocumentAreTheFuture) {
  Relation seen = Right();
  seen.Set(6, 9, true);
  const MaskDifference difference = Compare(seen, Documents(), 0);
  EXPECT_EQ(difference.fault, MaskFault::kFuture);
  EXPECT_EQ(difference.example,
            "token 6 (document 1, position 2) sees token 9 (document 1, position 5)");
  EXPECT_EQ(difference.extra, 1);
}

TEST(MaskDifferenceTest, WindowOfAnotherWidthIsToldFromAnIrregularOne) {
  MaskDifference difference = Compare(Right(7), Documents(), 5);
  EXPECT_EQ(difference.fault, MaskFault::kWindow);
  EXPECT_EQ(difference.window, 7);
  EXPECT_EQ(difference.example,
            "token 9 (document 1, position 5) sees token 4 (document 1, position 0)");
  EXPECT_EQ(Compare(Right(), Documents(), 5).window, 0);
  EXPECT_EQ(Compare(Right(3), Documents(), 0).window, 3);
  EXPECT_EQ(Compare(Right(3), Documents(), 0).example,
            "token 3 (document 0, position 3) does not see token 0 (document 0, position 0)");
  Relation seen = Right(5);
  seen.Set(15, 4, true);
  EXPECT_EQ(Compare(seen, Documents(), 5).fault, MaskFault::kTooWide);
}

TEST(MaskDifferenceTest, BoundariesOneTokenOffAreTheirOwnFault) {
  EXPECT_EQ(Compare(RightFor({5, 12, 5}), Documents(), 0).fault, MaskFault::kBoundary);
  EXPECT_EQ(Compare(RightFor({3, 12, 7}), Documents(), 0).fault, MaskFault::kBoundary);
  EXPECT_EQ(Compare(RightFor({4, 11, 7}, 3), Documents(), 3).fault, MaskFault::kBoundary)
      << "one boundary is enough";
  EXPECT_EQ(Compare(RightFor({6, 11, 5}), Documents(), 0).fault, MaskFault::kOtherDocument);
  EXPECT_EQ(Compare(RightFor({16, 6}), Documents(), 0).fault, MaskFault::kOtherDocument);
}

TEST(MaskDifferenceTest, DocumentIdsThatWereRolledWrapAroundAndAreStillABoundary) {
  Relation seen = RightFor({5, 12, 5});
  for (int64_t query = 1; query < 5; ++query) seen.Set(query, 0, false);
  for (int64_t query = 17; query < 22; ++query) seen.Set(query, 0, true);
  EXPECT_EQ(Compare(seen, Documents(), 0).fault, MaskFault::kBoundary);
}

TEST(MaskDifferenceTest, LeakAtTheEdgesOfTheBatchAloneIsNoBoundary) {
  Relation seen = Right();
  seen.Set(21, 0, true);
  EXPECT_EQ(Compare(seen, Documents(), 0).fault, MaskFault::kOtherDocument);
}

TEST(MaskDifferenceTest, PairThatIsMissingIsShort) {
  Relation seen = Right();
  seen.Set(8, 8, false);
  const MaskDifference difference = Compare(seen, Documents(), 0);
  EXPECT_EQ(difference.fault, MaskFault::kShort);
  EXPECT_EQ(difference.missing, 1);
  EXPECT_EQ(Compare(Relation(22), Documents(), 0).fault, MaskFault::kShort);
}

TEST(MaskDifferenceTest, PictureShowsDocumentsAgainstDocuments) {
  EXPECT_THAT(Picture(Right(), Documents()), ElementsAre("\\..", ".\\.", "..\\"));
  EXPECT_THAT(Picture(RightFor({22}), Documents()), ElementsAre("\\..", "#\\.", "##\\"));
  EXPECT_THAT(Picture(Everything(), Documents()), ElementsAre("###", "###", "###"));
  EXPECT_THAT(Picture(Right(3), Documents()), ElementsAre("+..", ".+.", "..+"));
}

}  // namespace
}  // namespace bkm
