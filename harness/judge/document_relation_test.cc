// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/document_relation.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

// Rank 0 has documents of 4 and 3 tokens, rank 1 one of 5. Token ids are their positions; each
// document's first token does not count in the loss.
class DocumentRelationTest : public ::testing::Test {
 protected:
  DocumentRelationTest() {
    for (int64_t t = 0; t < 12; ++t) {
      batch_.input_ids.push_back(t);
      batch_.loss_mask.push_back(t != 0 && t != 4 && t != 7);
      golden_.push_back(-1.0 - 0.25 * static_cast<double>(t));
    }
    batch_.document_lengths = {4, 3, 5};
    for (int rank = 0; rank < 2; ++rank) {
      ObservedRank& one = ranks_.emplace_back();
      one.rank = one.data_rank = rank;
      one.data_ranks = 2;
    }
    ranks_[0].documents = {{0, 2}};
    ranks_[1].documents = {{2, 1}};
  }

  DocumentsOfRanks Documents() { return *DocumentsOfRanks::Of(ranks_, 0, batch_); }
  std::string Loss(double loss) {
    return DescribeLoss(Documents(), loss, golden_, 0.001).value_or("");
  }
  std::string Gradients(double first, double second) {
    return DescribeGradients(Documents(), Rows(first, second), 0.001).value_or("");
  }
  // Gradients with a row of 4 columns for each token. Those of the ranks' documents are these many
  // times the right ones.
  std::vector<TokenRows> Rows(double first, double second) {
    places_.clear(), seen_.clear(), right_.clear();
    for (int64_t place = 0; place < 48; ++place) {
      const int64_t token = place / 4;
      places_.push_back(place);
      right_.push_back(place % 3 == 0 ? 0.5 : -1);
      seen_.push_back((token < 7 ? first : second) * right_.back());
    }
    return {{12, 4, places_, seen_, right_}};
  }

  PackedBatch batch_;
  std::vector<double> golden_;
  std::vector<ObservedRank> ranks_;
  std::vector<int64_t> places_;
  std::vector<double> seen_, right_;
};

TEST_F(DocumentRelationTest, DocumentsThatRanksDidNotNameAreNotGuessed) {
  ranks_[1].documents = {{2, 2}};
  EXPECT_FALSE(DocumentsOfRanks::Of(ranks_, 0, batch_).has_value()) << "one too many";
  ranks_[1].documents = {{1, 2}};
  EXPECT_FALSE(DocumentsOfRanks::Of(ranks_, 0, batch_).has_value()) << "one of two ranks";
  ranks_[1].documents = {{2, 1}};
  ranks_[1].data_ranks = int64_t{1} << 50;
  EXPECT_FALSE(DocumentsOfRanks::Of(ranks_, 0, batch_).has_value()) << "more than there are";
  ranks_[1].documents.clear();
  EXPECT_FALSE(DocumentsOfRanks::Of(ranks_, 0, batch_).has_value());
}

TEST_F(DocumentRelationTest, LogProbsThatAreWrongInOneRanksDocumentsNameIt) {
  std::vector<double> seen = golden_;
  const auto describe = [&] {
    return DescribeLogProbs(Documents(), seen, golden_, 0.1).value_or("");
  };
  EXPECT_EQ(describe(), "");
  for (int64_t t = 7; t < 12; ++t) seen[t] -= 1;
  EXPECT_EQ(describe(), "log-probs are wrong only in the documents of rank 1 of 2 (document 2)");
  seen[0] -= 5;
  EXPECT_EQ(describe(), "") << "a document of the other rank is wrong, too";
  seen = golden_;
  seen[0] -= 5;
  EXPECT_EQ(describe(), "") << "rank 0 has a right document, too";
}

TEST_F(DocumentRelationTest, ALossWithoutARanksDocumentsNamesIt) {
  double first = 0, second = 0;  // of the ranks' documents
  for (int64_t t = 0; t + 1 < 12; ++t) {
    if (batch_.loss_mask[t + 1]) (t < 7 ? first : second) -= golden_[t];
  }
  EXPECT_EQ(Loss((first + second) / 9), "");
  EXPECT_EQ(Loss(first / 9),
            "the loss is that of the batch without the documents of rank 1 of 2 (document 2)");
  EXPECT_EQ(Loss(second / 4),
            "the loss is the mean over the batch without the documents of rank 0 of 2 (documents "
            "0, 1)");
  EXPECT_EQ(Loss((first / 5 + second / 4) / 2),
            "the loss is the mean of the ranks' own means: each rank divides by its own tokens");
  EXPECT_EQ(Loss(99), "");
}

TEST_F(DocumentRelationTest, GradientsWithoutARanksDocumentsNameIt) {
  EXPECT_EQ(Gradients(1, 1), "");
  EXPECT_EQ(Gradients(2, 2), "") << "one factor is no matter of documents";
  EXPECT_EQ(Gradients(1, 0.02),
            "the gradients lack the documents of rank 1 of 2 (document 2): in the rows of tokens "
            "that only one rank has, gradients are this many times the golden: 1.00 for rank 0 of "
            "2, 0.02 for rank 1 of 2");
  EXPECT_EQ(Gradients(1, 3),
            "the ranks' documents do not count alike: in the rows of tokens that only one rank "
            "has, gradients are this many times the golden: 1.00 for rank 0 of 2, 3.00 for rank 1 "
            "of 2");
  batch_.loss_mask = {0, 1, 0, 0, 0, 1, 0, 0, 1, 1, 1, 1};  // 2 and 4 tokens
  EXPECT_EQ(Gradients(1.5, 0.75),
            "each rank divides its loss by its own tokens: in the rows of tokens that only one "
            "rank has, gradients are this many times the golden: 1.50 for rank 0 of 2, 0.75 for "
            "rank 1 of 2");
}

TEST_F(DocumentRelationTest, ThinEvidenceOfGradientsSaysNothing) {
  std::vector<TokenRows> rows = Rows(1, 0);
  EXPECT_FALSE(DescribeGradients(Documents(), rows, 0.5)) << "rounding hides it";
  batch_.input_ids.assign(12, 3);
  EXPECT_FALSE(DescribeGradients(Documents(), rows, 0.001)) << "all ranks have the token";
  for (int64_t t = 0; t < 12; ++t) batch_.input_ids[t] = t;
  seen_[40] = 9;
  rows = {{12, 4, places_, seen_, right_}};
  EXPECT_FALSE(DescribeGradients(Documents(), rows, 0.001)) << "it is not a factor";
}

TEST_F(DocumentRelationTest, ShardsWithTheDocumentsOfTheirOwnRankAreNotReduced) {
  // Both halves of the rows need tokens of both ranks.
  batch_.input_ids = {0, 1, 6, 7, 2, 8, 9, 3, 4, 5, 10, 11};
  const auto describe = [&](double own, double other) {
    places_.clear(), seen_.clear(), right_.clear();
    for (int64_t place = 0; place < 48; ++place) {
      const int64_t token = place / 4;
      const bool is_first = token < 3 || (token >= 6 && token < 10);
      const bool is_upper = token < 6;
      places_.push_back(place);
      right_.push_back(1);
      seen_.push_back(is_first == is_upper ? own : other);
    }
    const std::vector<StepRows> steps = {{Documents(), {{12, 4, places_, seen_, right_}}}};
    return DescribeUnreduced(steps, 0.001, 2).value_or("");
  };
  EXPECT_EQ(describe(2, 0),
            "in the rows of tokens that only one rank has, each rank's shard of the gradients "
            "counts that rank's documents alone: gradients are not reduced over the group of 2");
  EXPECT_EQ(describe(1, 1), "");
  EXPECT_EQ(describe(0, 1), "");
}

}  // namespace
}  // namespace bkm
