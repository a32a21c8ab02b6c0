// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/load_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace bkm {
namespace {

using Tensors = std::map<std::string, ObservedTensor>;

// Numbers like a real probe's: a norm weight around 1 and a projection around 0.
const Tensors kFile = {{"norm.weight", {16.078972, 256.99423, 256}},
                       {"q_proj.weight", {36.189258, -40.781, 524288}}};

Tensors With(const char* name, ObservedTensor tensor) {
  Tensors loaded = kFile;
  loaded[name] = tensor;
  return loaded;
}

TEST(LoadCheckTest, WeightsOfTheFilePass) {
  const CheckResult result = CheckLoad(kFile, std::nullopt, kFile, "fp32");
  EXPECT_EQ(result.outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(result.facts["tensors"], 2);
  EXPECT_EQ(result.facts["off"], 0);
}

TEST(LoadCheckTest, RoundingToBf16IsAllowedToARunInBf16Only) {
  const Tensors rounded = With("q_proj.weight", {36.19, -40.9, 524288});
  EXPECT_EQ(CheckLoad(rounded, std::nullopt, kFile, "bf16").outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(CheckLoad(rounded, std::nullopt, kFile, "fp32").outcome, ClaimOutcome::kFailed);
}

TEST(LoadCheckTest, AnotherDrawOfTheSameDistributionFailsByItsSum) {
  const CheckResult result =
      CheckLoad(With("q_proj.weight", {36.2, 11.0, 524288}), std::nullopt, kFile, "bf16");
  EXPECT_EQ(result.outcome, ClaimOutcome::kFailed);
  EXPECT_EQ(result.stage, Stage::kGolden);
  EXPECT_EQ(result.reason, "weights-not-loaded");
  EXPECT_EQ(result.message,
            "1 of 2 parameters are not those of the file; the worst is q_proj.weight");
  EXPECT_EQ(result.facts["worst"]["loaded"],
            Json({{"norm", 36.2}, {"sum", 11.0}, {"numel", 524288}}));
}

TEST(LoadCheckTest, NormWeightLeftAtOneFails) {
  EXPECT_EQ(CheckLoad(With("norm.weight", {16, 256, 256}), std::nullopt, kFile, "bf16").outcome,
            ClaimOutcome::kFailed);
}

TEST(LoadCheckTest, WrongSizeAndNanFail) {
  EXPECT_EQ(CheckLoad(With("norm.weight", {16.078972, 256.99423, 255}), std::nullopt, kFile, "bf16")
                .outcome,
            ClaimOutcome::kFailed);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(
      CheckLoad(With("norm.weight", {nan, 256.99423, 256}), std::nullopt, kFile, "bf16").outcome,
      ClaimOutcome::kFailed);
}

TEST(LoadCheckTest, ParameterThatWasNotSeenIsUnseen) {
  EXPECT_EQ(CheckLoad({}, std::nullopt, kFile, "bf16").outcome, ClaimOutcome::kUnseen);
  const CheckResult result =
      CheckLoad({{"norm.weight", kFile.at("norm.weight")}}, std::nullopt, kFile, "bf16");
  EXPECT_EQ(result.outcome, ClaimOutcome::kUnseen);
  EXPECT_EQ(result.message, "1 of 2 parameters were not seen after loading, first q_proj.weight");
}

TEST(LoadCheckTest, AParameterThatTheModelLacksIsNotLoaded) {
  // torchtitan's gpt_oss had no bias in its router.
  const Tensors file = {{"a", {3, 1, 10}}, {"b", {4, 2, 20}}, {"router.bias", {12, -5, 30}}};
  const Tensors loaded = {{"a", file.at("a")}, {"b", file.at("b")}};
  const CheckResult result = CheckLoad(loaded, ObservedTensor{5, 3, 30}, file, "fp32");
  EXPECT_EQ(result.outcome, ClaimOutcome::kFailed);
  EXPECT_EQ(result.reason, "weights-not-loaded");
  EXPECT_EQ(result.message,
            "the model holds nothing for 1 of 3 parameters of the file, first router.bias");
  ASSERT_EQ(result.places.size(), 1u);
  EXPECT_EQ(result.places[0].where, "router.bias");
}

TEST(LoadCheckTest, EveryTensorThatIsOffIsAPlaceTheWorstFirst) {
  const Tensors file = {{"a", {3, 1, 10}}, {"b", {4, 2, 20}}, {"c", {5, 3, 30}}};
  const Tensors loaded = {{"a", {3.1, 1, 10}}, {"b", {4, 2, 20}}, {"c", {9, 3, 30}}};
  const CheckResult result = CheckLoad(loaded, std::nullopt, file, "fp32");
  EXPECT_EQ(result.message, "2 of 3 parameters are not those of the file; the worst is c");
  ASSERT_EQ(result.places.size(), 2u);
  EXPECT_EQ(result.places[0].where, "c");
  EXPECT_GT(*result.places[0].size, *result.places[1].size);
}

TEST(LoadCheckTest, ParametersWithoutNamesAreJudgedTogether) {
  const Tensors file = {{"a", {3, 1, 10}}, {"b", {4, 2, 20}}, {"c", {12, -5, 30}}};
  const Tensors named = {{"a", file.at("a")}};
  const auto outcome = [&](ObservedTensor held) {
    return CheckLoad(named, held, file, "fp32").outcome;
  };
  EXPECT_EQ(outcome({13, -1, 60}), ClaimOutcome::kFailed);
  EXPECT_EQ(outcome({12, -2, 60}), ClaimOutcome::kFailed);
  EXPECT_EQ(outcome({13, -1, 59}), ClaimOutcome::kUnseen) << "not the same elements";
  EXPECT_EQ(outcome({13, -2, 61}), ClaimOutcome::kFailed) << "more than the file has";
  const CheckResult result = CheckLoad(named, ObservedTensor{13, -1, 60}, file, "fp32");
  EXPECT_EQ(result.reason, "weights-not-loaded");
  EXPECT_EQ(result.message,
            "2 of 3 parameters of the file, first b, have no counterpart by name, and what the "
            "model holds for them is not what the file has");
}

TEST(LoadCheckTest, ParameterThatTheMappingLeavesOutFails) {
  const Tensors file = {{"a", {3, 1, 10}}, {"b", {4, 2, 20}}, {"c", {12, -5, 30}}};
  const ObservedTensor held = {13, -2, 60};
  const CheckResult result = CheckLoad({{"a", file.at("a")}}, held, file, "fp32");
  EXPECT_EQ(result.outcome, ClaimOutcome::kFailed);
  EXPECT_EQ(result.stage, Stage::kGolden);
  EXPECT_EQ(result.reason, "export-names");
  EXPECT_EQ(
      result.message,
      "the library's own mapping to Hugging Face's names leaves out parameters that the model "
      "holds: 2 of 3 of the file, first b");
  // A second name of a tied tensor stands for nothing else.
  EXPECT_EQ(CheckLoad({{"a", file.at("a")}, {"b", file.at("b")}, {"head", file.at("b")}}, held,
                      file, "fp32")
                .reason,
            "export-names");
  // Nor does a buffer that the file lacks.
  EXPECT_EQ(CheckLoad({{"a", file.at("a")}, {"correction", {1, 1, 8}}}, held, file, "fp32").reason,
            "export-names");
}

TEST(LoadCheckTest, ParametersUnderOtherNamesAreUnseen) {
  const Tensors file = {{"a", {3, 1, 10}}, {"b", {4, 2, 20}}};
  const Tensors renamed = {{"a", file.at("a")}, {"b_blocks", {4, 2, 20}}};
  EXPECT_EQ(CheckLoad(renamed, ObservedTensor{5, 3, 30}, file, "fp32").reason, "witness-missing");
}

TEST(LoadCheckTest, ParameterThatTheFileLacksFails) {
  const ObservedTensor more = {40, 216, 256 + 524288 + 64};
  const CheckResult named = CheckLoad(With("q_proj.bias", {1, 2, 64}), more, kFile, "bf16");
  EXPECT_EQ(named.outcome, ClaimOutcome::kFailed);
  EXPECT_EQ(named.reason, "weights-not-loaded");
  EXPECT_EQ(named.message,
            "the model holds parameters with 64 elements that the file lacks, such as q_proj.bias");
  // The library's mapping may drop it, so that it has no name.
  EXPECT_EQ(CheckLoad(kFile, more, kFile, "bf16").message,
            "the model holds parameters with 64 elements that the file lacks");
}

TEST(LoadCheckTest, AHeadThatIsNotTiedIsNamed) {
  const Tensors tied = {{"model.embed_tokens.weight", {3, 1, 64}}, {"norm.weight", {4, 2, 8}}};
  EXPECT_EQ(CheckLoad(tied, ObservedTensor{6, 4, 64 + 64 + 8}, tied, "bf16").message,
            "the model holds parameters with 64 elements that the file lacks, as many as its "
            "embedding has: the head is not tied to the embedding, as the model's configuration "
            "says");
  // A file with a head says nothing of the kind.
  Tensors untied = tied;
  untied["lm_head.weight"] = {3, 1, 64};
  EXPECT_EQ(CheckLoad(untied, ObservedTensor{6, 4, 3 * 64 + 8}, untied, "bf16").message,
            "the model holds parameters with 64 elements that the file lacks");
}

TEST(LoadCheckTest, ANameThatTheMappingAddsFails) {
  const ObservedTensor held = {40, 216, 256 + 524288};
  Tensors loaded = With("experts.-1.weight", kFile.at("q_proj.weight"));
  const CheckResult one = CheckLoad(loaded, held, kFile, "bf16");
  EXPECT_EQ(one.reason, "export-names");
  EXPECT_EQ(one.message,
            "the library's own mapping to Hugging Face's names gives 1 name that the file lacks, "
            "experts.-1.weight");
  loaded["experts.-2.weight"] = {1, 2, 3};
  EXPECT_EQ(CheckLoad(loaded, held, kFile, "bf16").message,
            "the library's own mapping to Hugging Face's names gives 2 names that the file lacks, "
            "first experts.-1.weight");
}

TEST(LoadCheckTest, MeasureTakesNormSumAndSize) {
  const ObservedTensor measured = Measure({3, -4});
  EXPECT_EQ(measured.norm, 5);
  EXPECT_EQ(measured.sum, -1);
  EXPECT_EQ(measured.numel, 2);
}

const Tensors kBuffers = {{"layers.1.correction", {0.16, 0.2, 8}},
                          {"layers.2.correction", {0.17, -0.1, 8}}};

TEST(BuffersTest, BuffersOfTheFilePass) {
  const CheckResult result = CheckBuffers(kBuffers, kBuffers, "bf16");
  EXPECT_EQ(result.outcome, ClaimOutcome::kPassed);
  EXPECT_EQ(result.facts["tensors"], 2);
}

TEST(BuffersTest, ABufferLeftAtZeroOrAnotherLayersFails) {
  Tensors loaded = kBuffers;
  loaded["layers.2.correction"] = {0, 0, 8};
  EXPECT_EQ(CheckBuffers(loaded, kBuffers, "bf16").message,
            "1 of 2 buffers are not those of the file; the worst is layers.2.correction");
  EXPECT_EQ(CheckBuffers(loaded, kBuffers, "bf16").reason, "weights-not-loaded");
  loaded = kBuffers;
  std::swap(loaded["layers.1.correction"], loaded["layers.2.correction"]);
  EXPECT_EQ(CheckBuffers(loaded, kBuffers, "bf16").facts["off"], 2);
}

TEST(BuffersTest, ABufferThatWasNotSeenIsNoPass) {
  Tensors loaded = kBuffers;
  loaded.erase("layers.1.correction");
  EXPECT_EQ(CheckBuffers(loaded, kBuffers, "bf16").outcome, ClaimOutcome::kUnseen);
  EXPECT_EQ(CheckBuffers(Tensors(), kBuffers, "bf16").message,
            "2 of 2 buffers were not seen after loading, first layers.1.correction");
}

TEST(BuffersTest, ModelsWithoutBuffersPass) {
  EXPECT_EQ(CheckBuffers({}, {}, "fp32").outcome, ClaimOutcome::kPassed);
}

}  // namespace
}  // namespace bkm
