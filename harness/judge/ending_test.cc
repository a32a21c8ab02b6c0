// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/ending.h"

#include <gtest/gtest.h>

#include "harness/judge/testing_exceptions.h"

namespace bkm {

void PrintTo(const Stop& stop, std::ostream* out) {
  *out << Name(stop.kind) << " at " << Name(stop.stage) << ", " << stop.reason << ": "
       << stop.message;
}

namespace {

Observation Ended(ObservedEnding ending, Stage stage = Stage::kForward) {
  Observation observation;
  observation.ending = std::move(ending);
  observation.stages = {{stage, std::nullopt}};
  return observation;
}

Stop Class(const Observation& observation, const char* attention = "flex") {
  return ClassifyEnding(observation, Asking(attention)).value();
}

TEST(EndingTest, CompletedCellDidNotStop) {
  EXPECT_EQ(ClassifyEnding(Ended({.kind = EndingKind::kCompleted}), Asking("flex")), std::nullopt);
}

TEST(EndingTest, SignalFromInsideIsACrash) {
  EXPECT_EQ(Class(Ended({.kind = EndingKind::kSignalled, .signal = 11}, Stage::kImport)),
            (Stop{VerdictKind::kBroken, Stage::kImport, "crashed", "ended by signal 11"}));
}

TEST(EndingTest, SignalFromOutsideIsSpurious) {
  EXPECT_EQ(
      Class(Ended({.kind = EndingKind::kSignalled, .signal = 9, .from_outside = true})),
      (Stop{VerdictKind::kSpurious, Stage::kForward, "killed", "ended by signal 9 from outside"}));
}

TEST(EndingTest, ExitIsBroken) {
  EXPECT_EQ(Class(Ended({.kind = EndingKind::kExited, .code = 3}, Stage::kImport)),
            (Stop{VerdictKind::kBroken, Stage::kImport, "exited",
                  "the process exited with code 3 before it finished"}));
}

TEST(EndingTest, OwnLimitsAreBroken) {
  EXPECT_EQ(Class(Ended({.kind = EndingKind::kLimit, .limit = "memory", .message = "9 GiB"})),
            (Stop{VerdictKind::kBroken, Stage::kForward, "limit-memory",
                  "exceeded its limit on memory: 9 GiB"}));
  EXPECT_EQ(Class(Ended({.kind = EndingKind::kLimit, .limit = "output"})).reason, "limit-output");
  EXPECT_EQ(Class(Ended({.kind = EndingKind::kLimit, .limit = "files"})).reason, "limit-files");
  EXPECT_EQ(Class(Ended({.kind = EndingKind::kLimit, .limit = "cpu"})).reason, "limit-cpu");
  EXPECT_EQ(Class(Ended({.kind = EndingKind::kLimit, .limit = "processes"})).reason,
            "limit-processes");
}

TEST(EndingTest, FirstTimeoutIsSpuriousAndTheSecondIsBroken) {
  Observation observation = Ended({.kind = EndingKind::kTimedOut}, Stage::kStep);
  observation.timeouts = 1;
  EXPECT_EQ(Class(observation), (Stop{VerdictKind::kSpurious, Stage::kStep, "timeout-once",
                                      "exceeded its time limit once"}));
  observation.timeouts = 2;
  EXPECT_EQ(Class(observation),
            (Stop{VerdictKind::kBroken, Stage::kStep, "timeout",
                  "exceeded its time limit again, alone and with twice the time"}));
}

TEST(EndingTest, FailureOfTheMachineIsSpurious) {
  EXPECT_EQ(Class(Ended({.kind = EndingKind::kForkFailed})).reason, "fork-failed");
  EXPECT_EQ(Class(Ended({.kind = EndingKind::kLost})).reason, "worker-lost");
  EXPECT_EQ(Class(Ended({.kind = EndingKind::kCancelled})).reason, "cancelled");
  const Stop full =
      Class(Raised(Stage::kStep, Exception("OSError", "[Errno 28] No space left on device: 'x'",
                                           {Frame(FrameOwner::kEngine, "verl/a.py", "call")})));
  EXPECT_EQ(full.kind, VerdictKind::kSpurious);
  EXPECT_EQ(full.reason, "disk-full");
}

TEST(EndingTest, ASubjectCannotClaimThatTheMachineFailed) {
  const auto raised = [](const char* message, std::optional<ObservedMachine> machine) {
    Observation observation =
        Raised(Stage::kStep,
               Exception("OSError", message, {Frame(FrameOwner::kEngine, "verl/a.py", "raise")}));
    observation.machine = machine;
    return Class(observation);
  };
  const ObservedMachine healthy;
  EXPECT_EQ(raised("[Errno 28] No space left on device", healthy).kind, VerdictKind::kBroken);
  EXPECT_EQ(raised("[Errno 28] No space left on device", healthy).reason, "raised");
  EXPECT_EQ(raised("[Errno 28] No space left on device", {{.disk_full = true}}).reason,
            "disk-full");
  EXPECT_EQ(raised("[Errno 12] Cannot allocate memory", healthy).kind, VerdictKind::kBroken);
  EXPECT_EQ(raised("[Errno 12] Cannot allocate memory", healthy).reason, "limit-memory");
  EXPECT_EQ(raised("[Errno 12] Cannot allocate memory", {{.memory_short = true}}).reason,
            "machine-memory");
  EXPECT_EQ(raised("[Errno 12] Cannot allocate memory", std::nullopt).reason, "machine-memory");
}

TEST(EndingTest, ACellThatReportsTooMuchOrNonsenseIsBroken) {
  EXPECT_EQ(Class(Ended({.kind = EndingKind::kLimit, .limit = "events", .message = "m"})),
            (Stop{VerdictKind::kBroken, Stage::kForward, "limit-events",
                  "exceeded its limit on events: m"}));
  EXPECT_EQ(Class(Ended({.kind = EndingKind::kMalformed, .message = "$.steps: m"})),
            (Stop{VerdictKind::kBroken, Stage::kForward, "evidence-malformed",
                  "what the cell reported cannot be read: $.steps: m"}));
}

TEST(EndingTest, AnImpossibleShapeIsTheSubjectsFault) {
  const auto raised = [](FrameOwner owner) {
    return Class(Raised(Stage::kForward,
                        Exception("WrongShape", "the model returned a tensor of shape (9, 64)",
                                  {Frame(owner, "bkm_cell/adapters/base.py", "raise")})));
  };
  EXPECT_EQ(raised(FrameOwner::kHarness), (Stop{VerdictKind::kWrong, Stage::kForward, "wrong-shape",
                                                "the model returned a tensor of shape (9, 64)"}));
  EXPECT_EQ(raised(FrameOwner::kEngine).kind, VerdictKind::kBroken) << "another class of this name";
}

// In a block that would be compiled, selective activation checkpointing calls an op.
Observation StoppedInACheckpoint(
    bool block_is_to_be_compiled, const char* function,
    const char* message = "scatter(): Expected self.dtype to be equal to src.dtype") {
  ObservedFrame block = Frame(FrameOwner::kLibrary, "torchtitan/models/decoder.py", "call");
  block.to_compile = block_is_to_be_compiled;
  return Raised(
      Stage::kForward,
      Exception(
          "RuntimeError", message,
          {block, Frame(FrameOwner::kTorch, "torch/utils/checkpoint.py", "call", "", function),
           Frame(FrameOwner::kLibrary, "torchtitan/models/moe.py", "call")}));
}

TEST(EndingTest, WhatOnlyAnEagerCheckpointRaisesIsUnsupported) {
  const char* kMode = "_CachingTorchDispatchMode.__torch_dispatch__";
  const Stop stop = Class(StoppedInACheckpoint(true, kMode));
  EXPECT_EQ(stop.kind, VerdictKind::kUnsupported);
  EXPECT_EQ(stop.reason, "device-missing");
  EXPECT_EQ(
      stop.message,
      "this machine runs eagerly what would be compiled, and the exception comes from eager "
      "selective activation checkpointing: RuntimeError: scatter(): Expected self.dtype to be "
      "equal to src.dtype (torchtitan/models/moe.py:7)");
  EXPECT_EQ(Class(StoppedInACheckpoint(false, kMode)).kind, VerdictKind::kBroken)
      << "eager for everybody";
  EXPECT_EQ(Class(StoppedInACheckpoint(true, "checkpoint")).kind, VerdictKind::kBroken)
      << "full checkpointing, which the compiler traces";
}

TEST(EndingTest, AnErrorThatNoMissingAutocastExplainsIsTheSubjectsInAnEagerCheckpointToo) {
  const char* kMode = "_CachingTorchDispatchMode.__torch_dispatch__";
  const char* kShape = "The size of tensor a (127) must match the size of tensor b (128)";
  EXPECT_EQ(Class(StoppedInACheckpoint(true, kMode, kShape)).kind, VerdictKind::kBroken);
  Observation in_the_mode = StoppedInACheckpoint(true, kMode, kShape);
  in_the_mode.exceptions[0].frames.pop_back();
  EXPECT_EQ(Class(in_the_mode).kind, VerdictKind::kUnsupported) << "the mode's own error";
}

TEST(EndingTest, ClearRefusalIsRefusedAtItsStage) {
  EXPECT_EQ(Class(VerlAttnTypeNotSupported(), "sdpa"),
            (Stop{VerdictKind::kRefused, Stage::kConstruct, "refused-option",
                  "AssertionError: attn_type sdpa not supported (sdpa is not a valid "
                  "language-model backend) (verl/workers/config/engine.py:7)"}));
  EXPECT_EQ(Class(VerlMasksSupported(), "sdpa").kind, VerdictKind::kRefused);
  EXPECT_EQ(Class(TransformersWithoutFlashAttention(), "flash_attention_2").kind,
            VerdictKind::kRefused);
}

TEST(EndingTest, AMissingPackageOfABackendThatNobodyAskedForIsAnIgnoredOverride) {
  Observation critic =
      Raised(Stage::kConstruct,
             Exception("RuntimeError", "model(/m) is not a value head model, please install trl",
                       {Frame(FrameOwner::kEngine, "verl/utils/model.py", "raise")}));
  critic.exceptions.push_back(TransformersWithoutFlashAttention().exceptions[0]);
  const Stop stop = Class(critic, "sdpa");
  EXPECT_EQ(stop.kind, VerdictKind::kBroken);
  EXPECT_EQ(stop.reason, "override-ignored");
  EXPECT_TRUE(stop.message.starts_with("asked for sdpa, got flash")) << stop.message;
  EXPECT_EQ(Class(critic, "flash_attention_2").reason, "raised");
}

TEST(EndingTest, MissingDeviceIsUnsupported) {
  EXPECT_EQ(Class(Ended({.kind = EndingKind::kDeviceMissing, .message = "no GPU"})),
            (Stop{VerdictKind::kUnsupported, Stage::kBackend, "device-missing", "no GPU"}));
}

TEST(EndingTest, RefusalThatWrapsAnotherErrorIsBroken) {
  Observation observation = VerlAttnTypeNotSupported();
  observation.exceptions.push_back(Exception("KeyError", "'sdpa'", {}));
  EXPECT_EQ(Class(observation, "sdpa").kind, VerdictKind::kRefused);
  observation.exceptions[1] = Exception("RuntimeError", "boom", {});
  EXPECT_EQ(Class(observation, "sdpa").kind, VerdictKind::kBroken);
}

TEST(EndingTest, FailedLookUpNamesTheModelNotTheOption) {
  EXPECT_EQ(Class(NoMatchingFlavor()),
            (Stop{VerdictKind::kBroken, Stage::kConstruct, "lookup-failed",
                  "ValueError: No matching torchtitan flavor found for model_type='qwen3', "
                  "hidden_size=256, num_layers=8, vocab_size=2048 "
                  "(verl/workers/engine/torchtitan/utils.py:7)"}));
}

TEST(EndingTest, StopInBackendOrMaskIsAStopInForward) {
  const Stop stop = Class(GroupedQueries(true), "varlen");
  EXPECT_EQ(stop.kind, VerdictKind::kBroken);
  EXPECT_EQ(stop.stage, Stage::kForward);
  EXPECT_EQ(stop.reason, "value-error");
}

TEST(EndingTest, MissingModuleIsNamed) {
  EXPECT_EQ(Class(EngineImportsMissingLibraryModule()),
            (Stop{VerdictKind::kBroken, Stage::kImport, "module-missing",
                  "ModuleNotFoundError: No module named 'torchtitan.distributed.context_parallel' "
                  "(verl/workers/engine/torchtitan/transformer_impl.py:7)"}));
}

TEST(EndingTest, HarnessThatFailsIsUnsupported) {
  const Stop stop =
      Class(Raised(Stage::kConstruct, Exception("AttributeError", "no 'x'", {kAdapterFrame})));
  EXPECT_EQ(stop.kind, VerdictKind::kUnsupported);
  EXPECT_EQ(stop.reason, "harness-error");
}

TEST(EndingTest, MissingModuleOfTheHarnessIsItsOwnFault) {
  const Stop stop =
      Class(Raised(Stage::kImport,
                   Exception("ModuleNotFoundError", "No module named 'bkm_cell.adapters.fixture'",
                             {kAdapterFrame}, "bkm_cell.adapters.fixture")));
  EXPECT_EQ(stop.kind, VerdictKind::kUnsupported);
  EXPECT_EQ(stop.reason, "harness-error");
}

TEST(EndingTest, CellThatNeedsAGpuIsUnsupportedOnACpu) {
  const Stop stop = Class(Raised(
      Stage::kConstruct,
      Exception("ValueError",
                "Flash backend of FlexAttention is only supported on Hopper or Blackwell",
                {Frame(FrameOwner::kLibrary, "torchtitan/models/qwen3/__init__.py", "raise")})));
  EXPECT_EQ(stop.kind, VerdictKind::kUnsupported);
  EXPECT_EQ(stop.reason, "device-missing");
}

TEST(EndingTest, ModuleThatTheAdapterDoesNotFindIsMissing) {
  const Stop stop =
      Class(Raised(Stage::kImport, Exception("ModuleNotFoundError",
                                             "No module named 'verl.workers.engine.torchtitan'",
                                             {kAdapterFrame}, "verl.workers.engine.torchtitan")));
  EXPECT_EQ(stop.kind, VerdictKind::kBroken);
  EXPECT_EQ(stop.reason, "module-missing");
}

TEST(EndingTest, ReplacementThatStopsTheCellIsAnIgnoredOverride) {
  Observation observation = Raised(
      Stage::kForward,
      Exception("AssertionError", "",
                {Frame(FrameOwner::kLibrary, "torchtitan/models/common/attention.py", "assert",
                       "assert attention_masks is None", "ScaledDotProductAttention.forward")}));
  observation.layers = {{"layers.0.attention.inner_attention", "ScaledDotProductAttention", "m"}};
  EXPECT_EQ(Class(observation, "flex"),
            (Stop{VerdictKind::kBroken, Stage::kForward, "override-ignored",
                  "asked for flex, got sdpa; then AssertionError "
                  "(torchtitan/models/common/attention.py:7): assert attention_masks is None"}));
  EXPECT_EQ(Class(observation, "sdpa").reason, "assertion");
}

TEST(EndingTest, ReplacementThatHasNothingToDoWithTheErrorIsNotTheReason) {
  Observation observation = NoMatchingFlavor();
  observation.configured = "sdpa";
  EXPECT_EQ(Class(observation, "flex").reason, "lookup-failed");
}

TEST(EndingTest, ComplaintThatOnlyTheAskedOptionIsSupportedIsAnIgnoredOverride) {
  const Stop stop = Class(VerlMasksSupported(), "flex");
  EXPECT_EQ(stop.kind, VerdictKind::kBroken);
  EXPECT_EQ(stop.reason, "override-ignored");
}

TEST(EndingTest, ExceptionThatWasNotReportedIsStillBroken) {
  EXPECT_EQ(Class(Ended({.kind = EndingKind::kRaised})).reason, "raised");
}

}  // namespace
}  // namespace bkm
