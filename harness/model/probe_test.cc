// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace bkm {
namespace {

using testing::Contains;
using testing::DoubleEq;
using testing::ElementsAre;

std::string ProbeErrorOf(const char* text) {
  return std::string(ProbeFromJson(*ParseJson(text, "t"), "t").status().message());
}

std::vector<double> Rates(const OptimizerSettings& settings) {
  return {LearningRateAt(settings, 0), LearningRateAt(settings, 1), LearningRateAt(settings, 2),
          LearningRateAt(settings, 3)};
}

TEST(LearningRateTest, IsConstantWithoutAWarmup) {
  EXPECT_THAT(Rates({.learning_rate = 0.5}), ElementsAre(0.5, 0.5, 0.5, 0.5));
}

TEST(LearningRateTest, ZeroBasedWarmupStartsAtNothing) {
  EXPECT_THAT(Rates({.learning_rate = 0.5, .warmup_steps = 2, .schedule = "zero-based"}),
              ElementsAre(0.0, 0.25, 0.5, 0.5));
}

TEST(LearningRateTest, OneBasedWarmupEndsWithItsLastStep) {
  EXPECT_THAT(Rates({.learning_rate = 0.5, .warmup_steps = 2, .schedule = "one-based"}),
              ElementsAre(0.25, 0.5, 0.5, 0.5));
}

TEST(LearningRateTest, DecaysFromTheFirstStepTowardsTheLeastFactor) {
  OptimizerSettings settings = {.learning_rate = 1, .decay = "linear", .total_steps = 4};
  EXPECT_THAT(Rates(settings), ElementsAre(1, 0.75, 0.5, 0.25));
  settings.min_lr_factor = 0.2;
  EXPECT_THAT(Rates(settings), ElementsAre(1, DoubleEq(0.8), DoubleEq(0.6), DoubleEq(0.4)));
  settings = {.learning_rate = 1, .decay = "cosine", .total_steps = 3};
  EXPECT_THAT(Rates(settings), ElementsAre(1, DoubleEq(0.75), DoubleEq(0.25), DoubleEq(0)));
}

TEST(LearningRateTest, ADecayBeginsAfterTheWarmup) {
  const OptimizerSettings settings = {.learning_rate = 1,
                                      .warmup_steps = 1,
                                      .schedule = "zero-based",
                                      .decay = "linear",
                                      .total_steps = 5};
  EXPECT_THAT(Rates(settings), ElementsAre(0, 1, 0.75, 0.5));
}

TEST(ProbeTest, ComesBackFromItsJson) {
  Probe probe;
  probe.attention = "flex";
  probe.head = "value";
  probe.input = "padded";
  probe.micro_batches = 2;
  probe.adapter_options = {{"leftover_checkpoint", "true"}};
  probe.checkpoint = "sharded-bf16";
  probe.rope_keys = "rope_parameters";
  probe.config = {{"rms_norm_eps", "1e-05"}, {"tie_word_embeddings", "false"}};
  probe.engine_options = {{"spmd_backend", "\"default\""}};
  probe.temperature = 0.7;
  probe.entropy = true;
  probe.optimizer = {.warmup_steps = 4,
                     .schedule = "one-based",
                     .decay = "cosine",
                     .total_steps = 9,
                     .min_lr_factor = 0.1};
  EXPECT_EQ(*ProbeFromJson(ToJson(probe), "t"), probe);
}

TEST(ProbeTest, NumbersDoNotDependOnHowTheBatchIsFed) {
  Probe probe;
  probe.input = "padded";
  probe.micro_batches = 2;
  probe.adapter_options = {{"leftover_checkpoint", "true"}};
  EXPECT_EQ(NumericsOf(probe), NumericsOf(Probe()));
}

TEST(ProbeTest, AnOlderProbeHasNoWordOnCheckpointAndConfig) {
  const Json json = ToJson(Probe());
  for (const char* key : {"checkpoint", "rope_keys", "config", "temperature", "entropy"})
    EXPECT_FALSE(json.contains(key));
}

TEST(ProbeTest, NumbersDependOnTemperatureEntropyAndDecay) {
  Probe warm, wordy, slower;
  warm.temperature = 0.7;
  wordy.entropy = true;  // the golden has tensors for it
  slower.optimizer = {.decay = "linear", .total_steps = 3};
  for (const Probe& probe : {warm, wordy, slower}) {
    EXPECT_NE(NumericsOf(probe), NumericsOf(Probe()));
    EXPECT_EQ(NumericsOf(*ProbeFromJson(NumericsOf(probe), "t")), NumericsOf(probe));
  }
}

TEST(ProbeTest, NumbersDependOnTheCheckpointAndTheConfig) {
  Probe rounded, keys, other;
  rounded.checkpoint = "sharded-bf16";
  keys.rope_keys = "rope_parameters";  // the folder's name is a hash of the numbers
  other.config = {{"rms_norm_eps", "1e-05"}};
  for (const Probe& probe : {rounded, keys, other}) {
    EXPECT_NE(NumericsOf(probe), NumericsOf(Probe()));
    EXPECT_EQ(NumericsOf(*ProbeFromJson(NumericsOf(probe), "t")), NumericsOf(probe));
  }
}

TEST(ProbeTest, NumbersDependOnHeadAndWarmup) {
  Probe critic, warm;
  critic.head = "value";
  warm.optimizer = {.warmup_steps = 2, .schedule = "zero-based"};
  EXPECT_NE(NumericsOf(critic), NumericsOf(Probe()));
  EXPECT_NE(NumericsOf(warm), NumericsOf(Probe()));
}

// The hash of this text names caches and golden/numeric.
TEST(ProbeTest, NumericsKeepTheirText) {
  EXPECT_EQ(NumericsOf(Probe()).dump(),
            R"({"documents":[[37,150,64,20,9],[262,1,29],[9,70,1,130,26,44]],"model":"qwen3",)"
            R"("optimizer":{"beta1":0.85,"beta2":0.97,"clip_norm":1.0,"epsilon":0.0001,)"
            R"("learning_rate":0.0002,"weight_decay":0.03},"seed":1,"steps":3})");
  Probe one_layout;
  one_layout.documents = {{5, 3}};
  EXPECT_EQ(NumericsOf(one_layout)["documents"].dump(), "[5,3]");
}

TEST(ProbeTest, LayoutsFollowEachOtherAndThenRotate) {
  Probe probe;
  probe.documents = {{5, 3}};
  EXPECT_EQ(DocumentsOf(probe, 0), (std::vector<int64_t>{5, 3}));
  EXPECT_EQ(DocumentsOf(probe, 1), (std::vector<int64_t>{3, 5}));
  probe.documents = {{5, 3}, {1, 2, 9}};
  EXPECT_EQ(DocumentsOf(probe, 1), (std::vector<int64_t>{1, 2, 9}));
  EXPECT_EQ(DocumentsOf(probe, 2), (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(DocumentsOf(probe, 3), (std::vector<int64_t>{2, 9, 1}));
}

TEST(ProbeTest, LayoutsAreWrittenAndReadAgain) {
  for (const char* documents : {"[5,3]", "[[5,3],[1,2,9]]"}) {
    const std::string text = absl::StrCat(R"({"model": "qwen3", "documents": )", documents, "}");
    const Probe probe = *ProbeFromJson(*ParseJson(text, "t"), "t");
    EXPECT_EQ(ToJson(probe)["documents"].dump(), documents);
    EXPECT_EQ(*ProbeFromJson(ToJson(probe), "t"), probe);
  }
}

// Why the default probe has these documents: see DefaultDocuments.
TEST(ProbeTest, TheDefaultDocumentsShowWhatIsKeptFromAnEarlierStep) {
  const auto layouts = DefaultDocuments();
  ASSERT_EQ(layouts.size(), 3);
  const auto longest = [](const auto& lengths) {
    return *std::max_element(lengths.begin(), lengths.end());
  };
  const auto total = [](const auto& lengths) {
    return std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  };
  EXPECT_NE(layouts[0].size(), layouts[1].size());
  EXPECT_NE(layouts[1].size(), layouts[2].size());
  EXPECT_GT(longest(layouts[1]), longest(layouts[0]));
  EXPECT_GT(total(layouts[1]), total(layouts[0]));
  EXPECT_EQ(total(layouts[2]), total(layouts[0]));
  EXPECT_NE(longest(layouts[0]), layouts[0].front());
  EXPECT_THAT(layouts[1], Contains(1));
  EXPECT_GE(layouts[1][0], 256) << "the second 128 queries see all of the first 128 keys";
}

TEST(ProbeTest, BadValuesAreNamed) {
  EXPECT_EQ(ProbeErrorOf(R"({"model": "qwen3", "documents": []})"),
            "t: $.documents: a list of token counts, or a list of such lists, is needed here");
  EXPECT_EQ(ProbeErrorOf(R"({"model": "qwen3", "documents": [[5], 1]})"),
            "t: $.documents: a list of token counts, or a list of such lists, is needed here");
  EXPECT_EQ(ProbeErrorOf(R"({"model": "qwen3", "documents": [5, 0]})"),
            "t: $.documents: a document has at least 1 token");
  EXPECT_EQ(ProbeErrorOf(R"({"model": "qwen3", "documents": [[5, 2], [1, 1]]})"),
            "t: $.documents: one document of each step has at least 2 tokens");
  EXPECT_EQ(ProbeErrorOf(R"({"model": "qwen3", "engine_options": [1]})"),
            "t: $.engine_options: an object is needed here");
  EXPECT_EQ(ProbeErrorOf(R"({"model": "qwen3", "config": {"rms_norm_epsilon": 1}})"),
            "t: $.config: unknown name 'rms_norm_epsilon': did you mean 'rms_norm_eps'?");
  EXPECT_EQ(ProbeErrorOf(R"({"model": "qwen3", "config": {"rope_theta": "1e4"}})"),
            "t: $.config: rope_theta is a number or a boolean, not \"1e4\"");
  EXPECT_EQ(ProbeErrorOf(R"({"model": "qwen3", "checkpoint": "bf16"})"),
            "t: $.checkpoint: unknown name 'bf16' (known: single-fp32, sharded-bf16, mxfp4)");
  EXPECT_EQ(ProbeErrorOf(R"({"model": "qwen3", "input": "ragged"})"),
            "t: $.input: 'ragged' is neither packed nor padded, which comes first");
  EXPECT_EQ(ProbeErrorOf(R"({"model": "qwen3", "documents": [5, 5], "micro_batches": 3})"),
            "t: $.micro_batches: 3 is out of range: 1 to 2");
  EXPECT_EQ(ProbeErrorOf(R"({"model": "qwen3", "optimizer": {"warmup_steps": 2}})"),
            "t: $.optimizer.schedule: missing: zero-based (HF) or one-based (torchtitan)");
  EXPECT_EQ(ProbeErrorOf(R"({"model": "qwen3", "optimizer": {"schedule": "one-based"}})"),
            "t: $.optimizer.schedule: set it only together with warmup_steps");
  EXPECT_EQ(ProbeErrorOf(R"({"model": "qwen3", "temperature": -1})"),
            "t: $.temperature: a positive number is needed here");
}

TEST(ProbeTest, ADecayThatSaysNothingIsNamed) {
  const auto error_of = [](const char* optimizer) {
    return ProbeErrorOf(
        absl::StrCat(R"({"model": "qwen3", "optimizer": )", optimizer, "}").c_str());
  };
  EXPECT_EQ(error_of(R"({"decay": "linear"})"),
            "t: $.optimizer.total_steps: missing: the number of steps after which the decay ends");
  EXPECT_EQ(error_of(R"({"min_lr_factor": 0.1})"),
            "t: $.optimizer.min_lr_factor: set it only together with decay");
  EXPECT_EQ(error_of(R"({"total_steps": 3})"),
            "t: $.optimizer.total_steps: set it only together with decay");
  EXPECT_EQ(error_of(R"({"decay": "linear", "total_steps": 3, "min_lr_factor": 1})"),
            "t: $.optimizer.min_lr_factor: a number from 0 to below 1 is needed here");
  EXPECT_EQ(error_of(R"({"decay": "linear", "total_steps": 2})"),
            "t: $.optimizer: total_steps is 2, but the cell trains 3 steps");
}

}  // namespace
}  // namespace bkm
