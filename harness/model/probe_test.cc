// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bkm {
namespace {

using testing::ElementsAre;

std::string ErrorOf(const char* text) {
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

TEST(ProbeTest, ComesBackFromItsJson) {
  Probe probe;
  probe.attention = "flex";
  probe.head = "value";
  probe.input = "padded";
  probe.micro_batches = 2;
  probe.leftover_checkpoint = true;
  probe.engine_options = {{"spmd_backend", "\"default\""}};
  probe.optimizer = {.warmup_steps = 4, .schedule = "one-based"};
  EXPECT_EQ(*ProbeFromJson(ToJson(probe), "t"), probe);
}

TEST(ProbeTest, NumbersDoNotDependOnHowTheBatchIsFed) {
  Probe probe;
  probe.input = "padded";
  probe.micro_batches = 2;
  probe.leftover_checkpoint = true;
  EXPECT_EQ(NumericsOf(probe), NumericsOf(Probe()));
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
            R"({"documents":[37,150,64,20,9],"model":"qwen3","optimizer":{"beta1":0.9,)"
            R"("beta2":0.999,"clip_norm":1.0,"epsilon":1e-08,"learning_rate":0.0001,)"
            R"("weight_decay":0.01},"seed":1,"steps":3})");
}

TEST(ProbeTest, BadValuesAreNamed) {
  EXPECT_EQ(ErrorOf(R"({"model": "qwen3", "documents": []})"),
            "t: $.documents: a list of token counts is needed here");
  EXPECT_EQ(ErrorOf(R"({"model": "qwen3", "documents": [5, 1]})"),
            "t: $.documents: a document has at least 2 tokens");
  EXPECT_EQ(ErrorOf(R"({"model": "qwen3", "engine_options": [1]})"),
            "t: $.engine_options: an object is needed here");
  EXPECT_EQ(ErrorOf(R"({"model": "qwen3", "input": "ragged"})"),
            "t: $.input: unknown name 'ragged' (known: packed, padded)");
  EXPECT_EQ(ErrorOf(R"({"model": "qwen3", "documents": [5, 5], "micro_batches": 3})"),
            "t: $.micro_batches: 3 is out of range: 1 to 2");
  EXPECT_EQ(ErrorOf(R"({"model": "qwen3", "optimizer": {"warmup_steps": 2}})"),
            "t: $.optimizer.schedule: missing: zero-based (HF) or one-based (torchtitan)");
  EXPECT_EQ(ErrorOf(R"({"model": "qwen3", "optimizer": {"schedule": "one-based"}})"),
            "t: $.optimizer.schedule: set it only together with warmup_steps");
}

}  // namespace
}  // namespace bkm
