// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/observation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Observation Read(const char* text) {
  return *ObservationFromJson(*ParseJson(text, "o.json"), "o.json");
}
std::string ErrorOf(const char* text) {
  return std::string(ObservationFromJson(*ParseJson(text, "o.json"), "o.json").status().message());
}

TEST(ObservationTest, NothingSeenIsALostCell) {
  const Observation observation = Read("{}");
  EXPECT_EQ(observation.ending.kind, EndingKind::kLost);
  EXPECT_EQ(observation.LastStage(), Stage::kImport);
  EXPECT_FALSE(observation.reach.has_value());
  EXPECT_THAT(observation.steps, IsEmpty());
}

TEST(ObservationTest, ChainOfCausesIsFlattenedNearestFirst) {
  const Observation observation = Read(R"({
    "ending": {"kind": "raised"},
    "stages": [{"stage": "import", "seconds": 0.3}, {"stage": "construct"}],
    "exception": {"type": "RuntimeError", "message": "outer", "frames": [
        {"file": "verl/a.py", "line": 3, "function": "f", "owner": "engine", "text": "g",
         "statement": "call"},
        {"file": "torchtitan/b.py", "line": 9, "function": "g", "owner": "library",
         "text": "raise X", "statement": "raise"}],
      "cause": {
  "type" : "ModuleNotFoundError", "name" : "spmd_types", "message" : "inner"
}
}
})");
  EXPECT_EQ(observation.LastStage(), Stage::kConstruct);
  EXPECT_EQ(observation.stages[0].seconds, 0.3);
  EXPECT_EQ(observation.stages[1].seconds, std::nullopt);
  ASSERT_EQ(observation.exceptions.size(), 2u);
  EXPECT_EQ(observation.exceptions[0].message, "outer");
  EXPECT_EQ(observation.exceptions[0].frames[1].owner, FrameOwner::kLibrary);
  EXPECT_EQ(observation.exceptions[0].frames[1].line, 9);
  EXPECT_EQ(observation.exceptions[1].name, "spmd_types");
}

TEST(ObservationTest, WitnessesAreRead) {
  const Observation observation = Read(R"({
    "adapter": {"precision_ran": "fp32", "era": "C"},
    "backend": {"layers": [{"layer": "layers.0", "class": "FlexAttention", "module": "m"}],
                "called": [{"layer": 0, "callable": "transformers.x.sdpa_attention_forward"}],
                "configured": "flex", "ops": ["flex_attention"]},
    "load": {"w": {"norm": 1.5, "sum": -2, "numel": 3}},
    "held": {"norm": 2.5, "sum": -3, "numel": 5},
    "load_buffers": {"b": {"norm": 1, "sum": 1, "numel": 1}},
    "mask": {"calls": [{"layer": "0", "type": "BlockMask", "digest": "ab", "pairs": 7}],
             "reach": {"position": 5, "moved": [4, 5], "largest": [0.5, 0.25]}},
    "steps": [{"loss": 7.5, "grad_norm": 2, "learning_rate": 1e-4, "log_probs_dtype": "float32",
               "optimizer": {"class": "AdamW", "param_groups": [
                   {"lr": 1e-4, "betas": [0.9, 0.99], "eps": 1e-8, "weight_decay": 0.01}]},
               "tensors": "tensors/step0.safetensors"}]})");
  EXPECT_EQ(observation.precision_ran, "fp32");
  EXPECT_EQ(observation.layers[0].class_name, "FlexAttention");
  EXPECT_THAT(observation.called, ElementsAre("transformers.x.sdpa_attention_forward"));
  EXPECT_EQ(observation.load.at("w").norm, 1.5);
  EXPECT_EQ(observation.load.at("w").numel, 3);
  EXPECT_EQ(observation.held->sum, -3);
  EXPECT_EQ(observation.load_buffers.at("b").numel, 1);
  EXPECT_EQ(observation.mask_calls[0].pairs, 7);
  EXPECT_THAT(observation.reach->moved, ElementsAre(4, 5));
  EXPECT_THAT(observation.reach->largest, ElementsAre(0.5, 0.25));
  EXPECT_EQ(observation.steps[0].loss, 7.5);
  EXPECT_EQ(observation.steps[0].param_groups[0].beta2, 0.99);
  EXPECT_EQ(observation.steps[0].tensors, "tensors/step0.safetensors");
}

TEST(ObservationTest, WritesWhatItRead) {
  const Json json = *ParseJson(R"({
    "ending": {"kind": "raised", "code": 1, "from_outside": true, "message": "m"},
    "stages": [{"stage": "import", "seconds": 0.5}, {"stage": "construct"}],
    "exception": {"type": "A", "message": "outer", "frames": [
        {"file": "a.py", "line": 3, "function": "f", "owner": "engine", "text": "g",
         "statement": "call"}], "cause": {"type": "B", "cause": {"type": "C", "name": "n"}}},
    "plant": ["fault"],
    "adapter": {"precision_ran": "fp32"},
    "backend": {"layers": [{"layer": "0", "class": "F", "module": "m"}],
                "called": [{"callable": "x.y"}], "configured": "flex", "ops": ["o"],
                "kernels": [{"layer": 1, "forward": ["f"], "backward": ["b"]}],
                "gpu_reads": [8, 8],
                "gpu_differences": [{"stand_in": "varlen-cpu", "layer": 3, "step": 1,
                                     "argument": "max_q", "what": "w", "calls": 2}]},
    "load": {"w": {"norm": 1.5, "sum": -2.0, "numel": 3}},
    "held": {"norm": 2.5},
    "mask": {"calls": [{"layer": "0", "type": "BlockMask", "digest": "ab", "pairs": 7}],
             "reach": {"position": 5, "moved": [4, 5], "largest": [0.5, 0.25]},
             "reaches": [{"position": 6}], "attended": [{"layer": 2, "relation": "r"}],
             "attended_error": "e"},
    "steps": [{"loss": null, "forwards": 2, "tensors": "tensors/t", "optimizer": {"class": "AdamW",
               "param_groups": [{"lr": 0.5, "betas": [0.5, 0.75], "eps": 0.25}]}}],
    "timeouts": 1})",
                               "o.json");
  EXPECT_EQ(Json(*ParseJson(ToJson(*ObservationFromJson(json, "o.json")).dump(), "o.json")), json);
}

TEST(ObservationTest, NumberThatIsNullWasNotFiniteAndAbsentWasNotSeen) {
  const Observation observation = Read(R"({"steps": [{"loss": null}]})");
  EXPECT_TRUE(std::isnan(*observation.steps[0].loss));
  EXPECT_EQ(observation.steps[0].grad_norm, std::nullopt);
}

TEST(ObservationTest, UnknownFieldsAreIgnored) {
  EXPECT_EQ(Read(R"({"new": [1], "ending": {"kind": "completed", "mood": 3}})").ending.kind,
            EndingKind::kCompleted);
}

TEST(ObservationTest, WrongTypeNamesThePath) {
  EXPECT_EQ(ErrorOf("[]"), "o.json: $: an object is needed here, not array");
  EXPECT_EQ(ErrorOf(R"({"steps": [{}, {"loss": "7"}]})"),
            "o.json: $.steps[1].loss: a number is needed here, not string");
  EXPECT_EQ(ErrorOf(R"({"mask": {"reach": {"moved": [1, 2.5]}}})"),
            "o.json: $.mask.reach.moved[1]: a whole number is needed here, not number");
  EXPECT_EQ(ErrorOf(R"({"mask": {"reach": {"largest": [1, "x"]}}})"),
            "o.json: $.mask.reach.largest[1]: a number is needed here, not string");
  EXPECT_EQ(ErrorOf(R"({"exception": {"cause": {"frames": [{"line": "1"}]}}})"),
            "o.json: $.exception.cause.frames[0].line: a whole number is needed here, not string");
  EXPECT_EQ(ErrorOf(R"({"load": []})"), "o.json: $.load: an object is needed here, not array");
}

TEST(ObservationTest, UnknownNameOfAClosedSetIsAnError) {
  EXPECT_EQ(ErrorOf(R"({"ending": {"kind": "bored"}})"),
            "o.json: $.ending.kind: unknown name 'bored'");
  EXPECT_EQ(ErrorOf(R"({"stages": [{"stage": "import"}, {"stage": "lunch"}]})"),
            "o.json: $.stages[1].stage: unknown stage 'lunch'");
}

}  // namespace
}  // namespace bkm
