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
  EXPECT_EQ(raised("[Errno 12] Cannot allocate memory", std::nullopt).reason, "limit-memory")
      << "nobody looked at the machine";
  EXPECT_EQ(raised("[Errno 28] No space left on device", std::nullopt).kind, VerdictKind::kBroken);
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

TEST(EndingTest, ADeviceThatDoesNotComputeBeforeASubjectRunsSaysNothingAboutThePair) {
  const auto raised = [](FrameOwner owner, bool has_begun) {
    Observation cell =
        Raised(Stage::kImport, Exception("DeviceUnusable", "no CUDA device",
                                         {Frame(owner, "bkm_cell/device.py", "raise")}));
    if (!has_begun) cell.stages.clear();
    return Class(cell);
  };
  EXPECT_EQ(raised(FrameOwner::kHarness, /*has_begun=*/false),
            (Stop{VerdictKind::kUnsupported, Stage::kBackend, "device-missing", "no CUDA device"}));
  EXPECT_EQ(raised(FrameOwner::kEngine, false).kind, VerdictKind::kBroken)
      << "another class of this name";
  EXPECT_NE(raised(FrameOwner::kHarness, true).reason, "device-missing")
      << "a subject had the process by then";
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

TEST(EndingTest, ASubjectsWordsExcuseNothing) {
  const auto raised = [](const char* type, const char* message, const char* statement) {
    return Class(Raised(Stage::kConstruct,
                        Exception(type, message,
                                  {Frame(FrameOwner::kLibrary,
                                         "torchtitan/models/qwen3/__init__.py", statement)})));
  };
  EXPECT_EQ(
      raised("ValueError",
             "Flash backend of FlexAttention is only supported on Hopper or Blackwell", "raise")
          .kind,
      VerdictKind::kRefused);
  for (const char* words : {"this cannot be run on CPU", "it requires a CUDA device",
                            "No space left on device", "[Errno 12] Cannot allocate memory",
                            "Expected self.dtype to be equal to src.dtype", "registry unreachable"})
    EXPECT_EQ(raised("RuntimeError", words, "raise").kind, VerdictKind::kBroken) << words;
}

TEST(EndingTest, WhatOnlyTheAdapterLooksForIsTheHarnesss) {
  const auto missing = [](const char* type, const char* name, const char* imported_by) {
    Observation observation =
        Raised(Stage::kImport, Exception(type, absl::StrCat("no ", name), {kAdapterFrame}, name));
    observation.exceptions[0].imported_by = imported_by;
    return Class(observation);
  };
  // Our list is out of date.
  Stop stop = missing("ModuleNotFoundError", "verl.workers.utils.losses", "");
  EXPECT_EQ(stop.kind, VerdictKind::kUnsupported);
  EXPECT_EQ(stop.reason, "harness-error");
  EXPECT_EQ(stop.message,
            "bkm's adapter asks for verl.workers.utils.losses, which this version lacks and which "
            "none of its own code imports: ModuleNotFoundError: no verl.workers.utils.losses "
            "(bkm_cell/adapters/verl_torchtitan.py:7)");
  EXPECT_EQ(missing("AttributeError", "sft_loss", "").reason, "harness-error");
  // The engine's own trainer imports it, and it is gone.
  stop = missing("ModuleNotFoundError", "verl.workers.utils.losses", "verl/trainer/sft.py:3");
  EXPECT_EQ(stop.kind, VerdictKind::kBroken);
  EXPECT_EQ(stop.reason, "module-missing");
  EXPECT_EQ(missing("AttributeError", "sft_loss", "verl/trainer/sft.py:3").reason,
            "attribute-missing");
}

TEST(EndingTest, AModuleOfTheHarnessThatASubjectImportedIsNoExcuse) {
  const auto raised = [](const char* function, FrameOwner caller) {
    return Class(Raised(Stage::kImport,
                        Exception("ModuleNotFoundError", "No module named 'torch'",
                                  {kAdapterFrame, Frame(caller, "fake_engine/__init__.py", "other"),
                                   Frame(FrameOwner::kPython, "importlib/__init__.py", "call"),
                                   Frame(FrameOwner::kHarness, "bkm_cell/adapters/base.py",
                                         "import", "", function)},
                                  "torch")));
  };
  EXPECT_EQ(raised("<module>", FrameOwner::kEngine).reason, "module-missing");
  EXPECT_EQ(raised("<module>", FrameOwner::kHarness).reason, "harness-error");
  EXPECT_EQ(raised("hook", FrameOwner::kEngine).reason, "harness-error")
      << "it called what we had put in its way";
}

TEST(EndingTest, AStandInThatTorchCannotLoadIsTheHarnesssAndTorchThatCannotBeImportedIsNot) {
  const auto raised = [](Stage stage, const char* function,
                         FrameOwner caller = FrameOwner::kHarness) {
    return Class(Raised(
        stage, Exception("OSError", "libvarlen_cpu.so: undefined symbol: torch_call_dispatcher",
                         {Frame(caller, "bkm_cell/shims/varlen_cpu.py", "call"),
                          Frame(FrameOwner::kTorch, "torch/_ops.py", "call", "", function),
                          Frame(FrameOwner::kPython, "ctypes/__init__.py", "call")})));
  };
  EXPECT_EQ(raised(Stage::kImport, "load_library").reason, "harness-error");
  EXPECT_EQ(raised(Stage::kImport, "<module>").kind, VerdictKind::kBroken);
  EXPECT_EQ(raised(Stage::kImport, "load_library", FrameOwner::kLibrary).kind,
            VerdictKind::kBroken);
  EXPECT_EQ(raised(Stage::kBackward, "backward").kind, VerdictKind::kBroken)
      << "the subjects have run";
}

TEST(EndingTest, ASubjectsFileThatCannotBeParsedIsTheSubjects) {
  const Stop stop = Class(
      Raised(Stage::kImport, Exception("SyntaxError", "invalid syntax",
                                       {kAdapterFrame, Frame(FrameOwner::kEngine, "verl/a.py",
                                                             "other", "def f(:", "<module>")})));
  EXPECT_EQ(stop.kind, VerdictKind::kBroken);
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
