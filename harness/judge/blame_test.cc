// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/blame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/judge/testing_exceptions.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Packages kPair = {"verl", "torchtitan"};
const Packages kAlone = {"", "torchtitan"};

Observation Finished() {
  Observation observation;
  observation.ending.kind = EndingKind::kCompleted;
  return observation;
}

std::vector<std::string> BlameOf(const Observation& observation,
                                 const Observation& control = Finished()) {
  return BlameForStop(observation, kPair, &control);
}

Observation EngineRaises(const char* type, const char* message, const char* file = "verl/a.py",
                         const char* name = "") {
  return Raised(
      Stage::kConstruct,
      Exception(type, message, {kAdapterFrame, Frame(FrameOwner::kEngine, file, "call")}, name));
}

TEST(BlameTest, CellWithAnEngineButNoControlHasNoBlame) {
  EXPECT_THAT(BlameForStop(NoMatchingFlavor(), kPair, nullptr), IsEmpty());
}

TEST(BlameTest, EngineThatAsksTheLibraryForAMissingModuleIsTheInterface) {
  EXPECT_THAT(BlameOf(EngineImportsMissingLibraryModule()), ElementsAre("interface"));
  EXPECT_THAT(BlameOf(EngineRaises("ImportError", "cannot import name 'X' from 'torchtitan.y'",
                                   "verl/a.py", "torchtitan.y.X")),
              ElementsAre("interface"));
}

TEST(BlameTest, EngineThatAsksAnotherPackageIsToBlameItself) {
  EXPECT_THAT(BlameOf(EngineRaises(
                  "ImportError", "cannot import name 'AutoModelForVision2Seq' from 'transformers'",
                  "verl/utils/model.py", "transformers.AutoModelForVision2Seq")),
              ElementsAre("engine"));
}

TEST(BlameTest, WrongKeywordInTheEnginesCodeForTheLibraryIsTheInterface) {
  const char* message = "ParallelDims.__init__() got an unexpected keyword argument 'etp'";
  EXPECT_THAT(
      BlameOf(EngineRaises("TypeError", message, "verl/workers/engine/torchtitan/engine.py")),
      ElementsAre("interface"));
  EXPECT_THAT(BlameOf(EngineRaises("TypeError", message, "verl/utils/other.py")),
              ElementsAre("engine"));
}

TEST(BlameTest, ObjectThatLacksTheAttributeTellsWhoseItIs) {
  Observation observation = EngineRaises("AttributeError", "'X' object has no attribute 'y'");
  observation.exceptions[0].object = "torchtitan.models.qwen3.Config";
  EXPECT_THAT(BlameOf(observation), ElementsAre("interface"));
  observation = EngineRaises("AttributeError", "'X' object has no attribute 'y'",
                             "verl/workers/engine/torchtitan/engine.py");
  observation.exceptions[0].object = "verl.workers.config.Config";
  EXPECT_THAT(BlameOf(observation), ElementsAre("engine"));
}

TEST(BlameTest, SameErrorInTheControlIsNotTheEngines) {
  Observation engine =
      Raised(Stage::kForward, Exception("RuntimeError", "boom in /tmp/a: 16",
                                        {Frame(FrameOwner::kLibrary, "torchtitan/a.py", "call"),
                                         Frame(FrameOwner::kEngine, "verl/hook.py", "raise")}));
  const Observation control =
      Raised(Stage::kForward, Exception("RuntimeError", "boom in /tmp/b: 8",
                                        {Frame(FrameOwner::kLibrary, "torchtitan/a.py", "raise")}));
  EXPECT_THAT(BlameOf(engine, control), ElementsAre("library"));
  EXPECT_THAT(BlameOf(engine), ElementsAre("engine"));
}

TEST(BlameTest, RaisedInsideTorchUnderALibraryFrameIsTheLibraryAndTheRuntime) {
  EXPECT_THAT(BlameOf(GroupedQueries(true), GroupedQueries(false)),
              ElementsAre("library", "runtime"));
  EXPECT_THAT(BlameOf(GroupedQueries(true)), ElementsAre("library", "runtime"));
  EXPECT_THAT(BlameForStop(GroupedQueries(false), kAlone, nullptr),
              ElementsAre("library", "runtime"));
}

TEST(BlameTest, OtherwiseTheDeepestPartyThatRaisedIsBlamed) {
  EXPECT_THAT(BlameOf(NoMatchingFlavor()), ElementsAre("engine"));
  EXPECT_THAT(BlameForStop(TransformersWithoutFlashAttention(), {"", "transformers"}, nullptr),
              ElementsAre("library"));
  EXPECT_THAT(BlameOf(Raised(Stage::kImport,
                             Exception("ModuleNotFoundError", "No module named 'spmd_types'",
                                       {Frame(FrameOwner::kLibrary, "torchtitan/a.py", "import")},
                                       "spmd_types"))),
              ElementsAre("library"));
}

TEST(BlameTest, WhatTorchLacksIsTheRuntimes) {
  const auto blamed = [](const char* type, const char* message, const char* name) {
    const Observation observation =
        Raised(Stage::kImport,
               Exception(type, message,
                         {Frame(FrameOwner::kLibrary, "transformers/integrations/fp8.py", "other"),
                          Frame(FrameOwner::kTorch, "torch/__init__.py", "raise")},
                         name));
    return BlameForStop(observation, {"", "transformers"}, nullptr);
  };
  EXPECT_THAT(blamed("AttributeError", "module 'torch' has no attribute 'float8_e8m0fnu'",
                     "float8_e8m0fnu"),
              ElementsAre("runtime"));
  EXPECT_THAT(blamed("ImportError", "cannot import name 'X' from 'torch.nn'", "torch.nn.X"),
              ElementsAre("runtime"));
  EXPECT_THAT(blamed("ModuleNotFoundError", "No module named 'torch.y'", "torch.y"),
              ElementsAre("runtime"));
  EXPECT_THAT(blamed("AttributeError", "module 'torchtitan' has no attribute 'x'", "x"),
              ElementsAre("library", "runtime"));
}

TEST(BlameTest, WhatTheAdapterDoesNotFindAndItsOwnerImportsIsItsOwners) {
  const auto missing = [](const char* type, const char* name, const char* imported_by) {
    Observation observation = Raised(Stage::kImport, Exception(type, "", {kAdapterFrame}, name));
    observation.exceptions[0].imported_by = imported_by;
    return observation;
  };
  EXPECT_THAT(BlameOf(missing("ModuleNotFoundError", "verl.workers.engine.torchtitan",
                              "verl/trainer/sft_trainer.py:3")),
              ElementsAre("engine"));
  EXPECT_THAT(
      BlameOf(missing("ModuleNotFoundError", "torchtitan.models.qwen3", "torchtitan/train.py:4")),
      ElementsAre("library"));
  EXPECT_THAT(BlameOf(missing("AttributeError", "HFModelConfig", "verl/trainer/sft_trainer.py:3")),
              ElementsAre("engine"));
}

TEST(BlameTest, CrashThatTheControlSharesIsNotTheEngines) {
  Observation crash;
  crash.ending = {.kind = EndingKind::kSignalled, .signal = 11};
  EXPECT_THAT(BlameOf(crash, crash), ElementsAre("library", "runtime"));
  EXPECT_THAT(BlameOf(crash), IsEmpty());
}

}  // namespace
}  // namespace bkm
