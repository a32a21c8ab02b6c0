// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/selftest/mutant_outcome.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "harness/base/files.h"
#include "harness/numerics/safetensors.h"

namespace bkm {
namespace {

class MutantOutcomeTest : public ::testing::Test {
 protected:
  MutantOutcomeTest() : folder_(*CreateTempDirectory(::testing::TempDir(), "cell-")) {
    observation_.ending.kind = EndingKind::kCompleted;
    observation_.load["a"] = {.norm = 1, .sum = 2, .numel = 3};
    observation_.steps = {{.loss = 7, .grad_norm = 1, .tensors = "tensors/step0.safetensors"}};
    WriteStep(0.5f);
    plain_ = Digest();
  }
  ~MutantOutcomeTest() override { RemoveTree(folder_).IgnoreError(); }

  void WriteStep(float gradient) {
    ASSERT_TRUE(CreateDirectories(folder_ / "tensors").ok());
    ASSERT_TRUE(WriteSafetensors(folder_ / "tensors/step0.safetensors",
                                 {NamedTensor::F32("grad/a", {1}, std::array{gradient})})
                    .ok());
  }
  std::string Digest() { return NumbersDigest(observation_, folder_).value(); }
  MutantOutcome Outcome(VerdictKind kind) {
    CellRecord record;
    record.verdict = Verdict{.kind = kind};
    return OutcomeOf(record, &observation_, folder_, plain_).value();
  }

  std::filesystem::path folder_;
  Observation observation_;
  std::string plain_;
};

TEST_F(MutantOutcomeTest, OneBitOfAnyNumberCounts) {
  EXPECT_EQ(Outcome(VerdictKind::kOk), MutantOutcome::kIdentical);
  WriteStep(std::nextafter(0.5f, 1.0f));
  EXPECT_EQ(Outcome(VerdictKind::kOk), MutantOutcome::kSurvived);
  EXPECT_EQ(Outcome(VerdictKind::kWrong), MutantOutcome::kKilled);
}

// A mutant may change nothing but what infer_batch returns.
TEST_F(MutantOutcomeTest, TheForwardThatTrainsNothingCounts) {
  observation_.forward_only = {"tensors/forward_only.safetensors", "float32"};
  const auto digest_with = [&](float log_prob) {
    EXPECT_TRUE(WriteSafetensors(folder_ / observation_.forward_only->tensors,
                                 {NamedTensor::F32("log_probs", {1}, std::array{log_prob})})
                    .ok());
    return Digest();
  };
  EXPECT_NE(digest_with(-7), digest_with(-7.5));
  EXPECT_EQ(digest_with(-7), digest_with(-7));
}

TEST_F(MutantOutcomeTest, ScalarsCountToo) {
  const Observation right = observation_;
  const auto changes = [&](auto change) {
    observation_ = right;
    change();
    return Digest() != plain_;
  };
  EXPECT_TRUE(changes([&] { observation_.steps[0].loss = 8; }));
  EXPECT_TRUE(
      changes([&] { observation_.steps[0].loss = std::numeric_limits<double>::quiet_NaN(); }));
  EXPECT_TRUE(changes([&] { observation_.steps[0].loss.reset(); }));
  EXPECT_TRUE(changes([&] { observation_.steps[0].grad_norm = 2; }));
  EXPECT_TRUE(changes([&] { observation_.steps[0].learning_rate = 1; }));
  EXPECT_TRUE(changes([&] { observation_.load["a"].norm = 2; }));
  EXPECT_TRUE(changes([&] { observation_.steps.clear(); }));
  EXPECT_FALSE(changes([&] { observation_.configured = "flex"; })) << "no number of the training";
}

TEST_F(MutantOutcomeTest, ARedCellWithEqualNumbersDoesNotCount) {
  EXPECT_EQ(Outcome(VerdictKind::kWrong), MutantOutcome::kIdentical);
}

TEST_F(MutantOutcomeTest, ACellThatStoppedIsNoSilentFault) {
  EXPECT_EQ(Outcome(VerdictKind::kBroken), MutantOutcome::kCrashed);
  EXPECT_EQ(Outcome(VerdictKind::kRefused), MutantOutcome::kCrashed);
  observation_.ending.kind = EndingKind::kRaised;
  EXPECT_EQ(Outcome(VerdictKind::kWrong), MutantOutcome::kCrashed);
}

TEST_F(MutantOutcomeTest, ACellThatSaysNothingIsNotMeasured) {
  EXPECT_EQ(Outcome(VerdictKind::kUnsupported), MutantOutcome::kUnmeasured);
  EXPECT_EQ(Outcome(VerdictKind::kSpurious), MutantOutcome::kUnmeasured);
  EXPECT_EQ(OutcomeOf(CellRecord(), nullptr, folder_, plain_).value(), MutantOutcome::kUnmeasured);
}

}  // namespace
}  // namespace bkm
