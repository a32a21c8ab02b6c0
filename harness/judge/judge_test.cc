// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>

#include "harness/base/files.h"
#include "harness/judge/claims.h"
#include "harness/judge/testing_exceptions.h"
#include "harness/judge/testing_observation.h"
#include "harness/judge/testing_steps.h"
#include "harness/numerics/model_shapes.h"
#include "harness/numerics/rope_frequencies.h"
#include "harness/numerics/safetensors.h"

namespace bkm {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A right, finished cell on disk; each test breaks one part. The reach test changed token 1 of the
// first of two documents (3 and 2 tokens).
// Undecided if the claim was not judged.
ClaimOutcome OutcomeOf(const Verdict& verdict, const char* claim) {
  const Finding* finding = verdict.Find(claim);
  return finding ? finding->outcome : ClaimOutcome::kUnseen;
}

class JudgeTest : public ::testing::Test {
 protected:
  JudgeTest() {
    reference_.folder = ProbeFolder();
    reference_.folder->reach = {.step = 0, .document = 0, .position = 1, .token = 9};
    reference_.folder->steps = cell_.batches;
    reference_.weights = std::map<std::string, ObservedTensor>{{"a", {1, 2, 3}}, {"b", {4, 5, 6}}};
    reference_.golden = cell_.golden;
    reference_.floors.emplace("bf16", cell_.floor);
    observation_.ending.kind = EndingKind::kCompleted;
    const Observation complete = *ObservationFromJson(CompleteObservation(), "complete");
    observation_.layers = complete.layers;
    observation_.kernels = complete.kernels;
    observation_.gpu_reads = complete.gpu_reads;
    observation_.precision_ran = "bf16";
    observation_.attended = complete.attended;
    observation_.load = *reference_.weights;
    observation_.reach = ObservedReach{1, {0, 1, 2}, {1, 1, 1}};
    observation_.steps = cell_.reported;
    for (ObservedStep& step : observation_.steps) step.forwards = 1;
    input_.probe = Asking("flex");
    input_.probe.steps = static_cast<int>(cell_.reported.size());
    input_.probe.optimizer = cell_.optimizer;
    input_.packages = {"verl", "torchtitan"};
    input_.observation = &observation_;
    input_.reference = &reference_;
    input_.cell_dir = *CreateTempDirectory(::testing::TempDir(), "cell");
    observation_.forward_only = complete.forward_only;
    observation_.model = complete.model;
    const ModelShape shape = *FindModelShape(input_.probe.model);
    observation_.model.rope_frequencies = ExactRopeFrequencies(shape.rope, shape.head_dim);
  }

  Verdict Judged() {
    WriteForwards(cell_, input_.cell_dir);
    for (size_t k = 0; k < observation_.steps.size(); ++k) Write(k);
    return Judge(input_);
  }

  void Write(size_t k) {
    observation_.steps[k].tensors = "step" + std::to_string(k) + ".safetensors";
    WriteStepTensors(cell_, k, input_.cell_dir / observation_.steps[k].tensors);
  }

  RightCell cell_ = MakeRightCell();
  Observation observation_;
  ReferenceData reference_ = {
      absl::UnknownError(""), absl::UnknownError(""), absl::UnknownError(""), {}};
  JudgeInput input_;
};

TEST_F(JudgeTest, RightCellIsOkAtGolden) {
  const Verdict verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kOk) << verdict.message;
  EXPECT_EQ(verdict.stage, Stage::kGolden);
  EXPECT_EQ(verdict.reason, "");
  EXPECT_EQ(verdict.message, "2 steps agree with the golden: log-probs within 0.0 times the floor");
  EXPECT_THAT(verdict.blame, IsEmpty());
  for (const char* check :
       {"backend", "mask", "arguments", "precision", "load", "numbers", "optimizer"})
    EXPECT_EQ(OutcomeOf(verdict, check), ClaimOutcome::kPassed) << check;
}

TEST_F(JudgeTest, AnOkSaysWhichOptionsDoNotActOrAreUnknown) {
  Judged();  // writes the files, which the twin shares
  input_.twins = {{.option = "param_offload", .seen = {&observation_, nullptr, input_.cell_dir}},
                  {.option = "strategy", .missing = "the cell without it cannot be read"}};
  EXPECT_THAT(Judge(input_).message,
              HasSubstr("; param_offload was accepted, and no effect of it was observed; whether "
                        "strategy acts is unknown: the cell without it cannot be read"));
  input_.twins[0].seen.cell_dir = "no-such-folder";
  const Verdict verdict = Judge(input_);
  EXPECT_EQ(verdict.kind, VerdictKind::kOk);
  EXPECT_EQ(verdict.effects[0].kind, EffectKind::kUnknown);
  EXPECT_THAT(verdict.message, HasSubstr("whether param_offload acts is unknown: the numbers of "
                                         "the steps cannot be compared: "));
}

TEST_F(JudgeTest, BuffersOfTheFileAreWeights) {
  reference_.buffers = std::map<std::string, ObservedTensor>{{"correction", {0.2, 0.1, 8}}};
  observation_.load_buffers = {{"correction", {0.2, 0.1, 8}}};
  EXPECT_EQ(Judged().kind, VerdictKind::kOk);
  EXPECT_EQ(OutcomeOf(Judged(), "buffers"), ClaimOutcome::kPassed);
  observation_.load_buffers = {{"correction", {0, 0, 8}}};
  EXPECT_EQ(Judged().kind, VerdictKind::kWrong);
  EXPECT_EQ(Judged().reason, reason::kWeightsNotLoaded);
  observation_.load_buffers.clear();
  EXPECT_EQ(Judged().kind, VerdictKind::kUnsupported);
  reference_.buffers = absl::DataLossError("buffers.json: cut off");
  EXPECT_EQ(Judged().reason, reason::kEvidenceUnreadable);
}

TEST_F(JudgeTest, AnOkSaysWhatItsFloorHides) {
  EXPECT_THAT(Judged().blind, IsEmpty());
  std::vector<FloorStep>& floors = *reference_.floors.at("bf16");
  floors[0].gradients["b"] = 0.3;          // four floors are more than all of it
  EXPECT_THAT(Judged().blind, IsEmpty());  // step 2 sees it
  floors[1].gradients["b"] = 0.25;
  const Verdict verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kOk) << verdict.message;
  EXPECT_THAT(verdict.blind, ElementsAre("errors of 100 % in the gradients of 1 of 2 tensors"));
  EXPECT_THAT(verdict.message,
              HasSubstr("; errors of 100 % in the gradients of 1 of 2 tensors would pass"));
  cell_.tensors[0].log_probs[0] = -9;
  EXPECT_THAT(Judged().blind, IsEmpty());
}

TEST_F(JudgeTest, AnOkInBf16SaysThatNoTableOfFrequenciesWasFound) {
  observation_.model.rope_frequencies.clear();
  const Verdict verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kOk) << verdict.message;
  EXPECT_THAT(verdict.message,
              HasSubstr("; small errors in the frequencies of the rotary embedding would pass"));
  observation_.precision_ran = input_.probe.precision = "fp32";
  reference_.floors.emplace("fp32", cell_.floor);
  for (ObservedStep& step : observation_.steps) step.products = {{"fp32", 57}};
  for (auto& kernels : observation_.kernels) kernels.precision = "fp32";
  EXPECT_EQ(Judged().kind, VerdictKind::kOk) << Judged().message;
  EXPECT_THAT(Judged().blind, IsEmpty()) << "the numbers show them";
}

TEST_F(JudgeTest, AnOkOfAModelWithExpertsInBf16SaysWhichErrorsOfItsRouterWouldPass) {
  input_.probe.model = "qwen3_moe";  // of two layers
  observation_.layers.resize(2);
  observation_.kernels.resize(2);
  observation_.gpu_reads.resize(2);
  observation_.attended.resize(2);
  for (ObservedStep& step : observation_.steps) step.attended.resize(2);
  const Verdict verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kOk) << verdict.message;
  EXPECT_THAT(verdict.blind,
              ElementsAre("errors in the choice or the weights of experts that move log-probs by "
                          "less than 0.04 nats a token, unless the reference predicts them"));
}

TEST_F(JudgeTest, EarliestStageThatFailsIsTheVerdict) {
  observation_.load["a"].norm = 7;
  cell_.tensors[0].log_probs[0] = -9;
  EXPECT_EQ(Judged().reason, "weights-not-loaded");
  EXPECT_EQ(Judged().stage, Stage::kGolden);
  observation_.steps[1].param_groups[0].learning_rate = 1;
  EXPECT_EQ(Judged().stage, Stage::kStep);
  observation_.reach->moved = {0, 1, 2, 3};
  EXPECT_EQ(Judged().stage, Stage::kMask);
  observation_.layers[0].class_name = "VarlenAttention";
  const Verdict verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kWrong);
  EXPECT_EQ(verdict.stage, Stage::kBackend);
  EXPECT_EQ(OutcomeOf(verdict, "mask"), ClaimOutcome::kFailed);
}

TEST_F(JudgeTest, EveryClaimThatFailsIsToldAndTheOneThatExplainsMostIsTheVerdict) {
  // A norm that is a little off, and gradients that are off by very much.
  observation_.model.rope_frequencies[3] *= 1 + 2e-4;
  cell_.tensors[0].tensors.at("a").gradient[0] *= 1e6;
  Verdict verdict = Judged();
  EXPECT_EQ(verdict.reason, "gradients-off") << verdict.message;
  ASSERT_GE(verdict.Failed().size(), 2u);
  EXPECT_EQ(&verdict.Failed()[0], verdict.Deciding());
  const Finding* config = verdict.Find("model");
  ASSERT_NE(config, nullptr);
  EXPECT_EQ(config->reason, "config-ignored");
  for (const Finding& failed : verdict.Failed()) {
    double last = std::numeric_limits<double>::infinity();
    for (const FailedPlace& place : failed.places) {
      if (!place.size) continue;
      EXPECT_LE(*place.size, last);
      last = *place.size;
    }
  }
  // A frequency that explains them is the verdict.
  observation_.model.rope_frequencies[3] *= 1e5;
  verdict = Judged();
  EXPECT_EQ(verdict.reason, "config-ignored") << verdict.message;
  // What is plainly not as asked comes before what is a matter of more or less.
  observation_.precision_ran = "bf16";
  input_.probe.precision = "fp32";
  EXPECT_EQ(Judged().reason, "precision-ignored");
}

// The gradient of such a parameter is not among those whose norm was seen: how gradients were
// clipped is unknown, and what explains both is the parameter.
TEST_F(JudgeTest, AParameterThatTheFileLacksExplainsANormThatIsTooSmall) {
  for (auto& [name, tensor] : cell_.tensors[0].tensors) tensor.norms[0] *= 0.99;
  EXPECT_EQ(Judged().reason, "clipping-off");
  observation_.held = ObservedTensor{7, 7, 3 + 6 + 5};
  const Verdict verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kWrong);
  EXPECT_EQ(verdict.reason, "weights-not-loaded");
  EXPECT_EQ(verdict.Find("optimizer")->message,
            "in step 1 the gradients of parameters that the file lacks were not seen: too little "
            "to tell how gradients were clipped");
}

TEST_F(JudgeTest, AForwardThatTrainsNothingIsJudgedToo) {
  cell_.forward_only.log_probs[0] = -8;
  const Verdict verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kWrong);
  EXPECT_EQ(verdict.reason, "log-probs-off");
  EXPECT_THAT(verdict.message, HasSubstr("of the forward that trains nothing in step 1 is off by"));
  observation_.forward_only.reset();
  EXPECT_EQ(Judged().kind, VerdictKind::kUnsupported);
}

TEST_F(JudgeTest, MasksOfEachTrainingStepAreJudged) {
  observation_.steps[1].attended.pop_back();
  Verdict verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kUnsupported);
  EXPECT_EQ(verdict.message,
            "in training step 2 nobody read which query attends to which key in 1 of 8 layers (7)");
  input_.probe.micro_batches = 2;  // these are not read
  EXPECT_EQ(OutcomeOf(Judged(), "mask"), ClaimOutcome::kPassed);
}

TEST_F(JudgeTest, ACellThatStoppedSaysWhatWasWrongBefore) {
  cell_.batches[0].document_lengths = reference_.folder->steps[0].document_lengths = {2, 3};
  observation_.ending.kind = EndingKind::kRaised;
  observation_.exceptions = {{.type = "RuntimeError", .message = "no"}};
  observation_.steps.clear();
  const Verdict verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kBroken);
  EXPECT_THAT(verdict.message, HasSubstr("before it stopped, documents"));
  EXPECT_EQ(OutcomeOf(verdict, "mask"), ClaimOutcome::kFailed);
}

TEST_F(JudgeTest, ThatACpuIsNotEnoughIsBelievedIfTheLibraryAloneStopsSo) {
  observation_.ending.kind = EndingKind::kRaised;
  observation_.exceptions = {{.type = "RuntimeError",
                              .message = "this cannot be run on CPU",
                              .frames = {Frame(FrameOwner::kLibrary, "torchtitan/a.py", "call")}}};
  observation_.stages = {{Stage::kForward, std::nullopt}};
  observation_.steps.clear();
  EXPECT_EQ(Judged().kind, VerdictKind::kBroken) << "nobody saw the library alone";
  Observation control = observation_;
  input_.control = &control;
  Verdict verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kUnsupported);
  EXPECT_EQ(verdict.reason, "device-missing");
  EXPECT_THAT(verdict.message, HasSubstr("; the library alone stops in the same way"));
  // The engine says so, and the library alone runs, or stops for another reason.
  control.exceptions[0].message = "something else cannot be run on CPU";
  EXPECT_EQ(Judged().kind, VerdictKind::kBroken);
  control.ending.kind = EndingKind::kCompleted;
  control.exceptions.clear();
  EXPECT_EQ(Judged().kind, VerdictKind::kBroken);
  // Both stop in the same way, and not for want of hardware.
  observation_.exceptions[0].message = "no";
  control = observation_;
  EXPECT_EQ(Judged().kind, VerdictKind::kBroken);
  // The library alone has no other cell to speak for it.
  observation_.exceptions[0].message = "this cannot be run on CPU";
  input_.packages.engine = "";
  input_.control = nullptr;
  EXPECT_EQ(Judged().kind, VerdictKind::kBroken);
}

TEST_F(JudgeTest, WhatThisMachineCannotRunHidesNoWrongMask) {
  observation_.ending.kind = EndingKind::kRaised;
  observation_.exceptions = {{.type = "RuntimeError", .message = "no CUDA GPUs are available"}};
  observation_.stages = {{Stage::kForward, std::nullopt}};
  observation_.steps.clear();
  const Observation control = observation_;
  input_.control = &control;
  EXPECT_EQ(Judged().kind, VerdictKind::kUnsupported);
  cell_.batches[0].document_lengths = reference_.folder->steps[0].document_lengths = {2, 3};
  const Verdict verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kWrong);
  EXPECT_EQ(verdict.stage, Stage::kMask);
  EXPECT_EQ(verdict.reason, "mask-off-by-one");
  EXPECT_THAT(verdict.message,
              HasSubstr("; then the cell stopped: RuntimeError: no CUDA GPUs are available"));
}

TEST_F(JudgeTest, ACheckpointThatWasNeverWrittenIsWrongAlsoIfLoadingItRaises) {
  input_.probe.resume_checkpoint = true;
  observation_.ending.kind = EndingKind::kRaised;
  observation_.exceptions = {{.type = "FileNotFoundError", .message = "no folder"}};
  observation_.stages = {{Stage::kResume, std::nullopt}};
  observation_.checkpoint_files = 0;
  Verdict verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kWrong);
  EXPECT_EQ(verdict.stage, Stage::kResume);
  EXPECT_EQ(verdict.reason, "resume-off");
  observation_.checkpoint_files = 3;
  verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kBroken);
  EXPECT_EQ(verdict.reason, "lookup-failed");
}

TEST_F(JudgeTest, ResumedStepsOfAGpuAreJudgedByTheGoldenAndTheOptimizer) {
  input_.probe.resume_checkpoint = true;
  observation_.checkpoint_files = 3;
  const auto judged = [&](const char* device, double log_prob, double after) {
    RightCell resumed = cell_;
    resumed.tensors[1].log_probs[0] += log_prob;
    resumed.tensors[1].tensors["b"].after[0] += after;
    observation_.resumed = {observation_.steps[1]};
    observation_.resumed[0].tensors = "resumed.safetensors";
    WriteStepTensors(resumed, 1, input_.cell_dir / "resumed.safetensors");
    input_.probe.device = device;
    return Judged();
  };
  EXPECT_EQ(judged("cpu", 0, 0).kind, VerdictKind::kOk) << judged("cpu", 0, 0).message;
  EXPECT_EQ(judged("cpu", 1e-3, 0).reason, "resume-off");
  EXPECT_EQ(judged("cuda", 1e-3, 0).kind, VerdictKind::kOk) << judged("cuda", 1e-3, 0).message;
  const Verdict wrong = judged("cuda", 1, 0);
  EXPECT_EQ(wrong.reason, "resume-off");
  EXPECT_EQ(wrong.stage, Stage::kResume);
  EXPECT_THAT(wrong.message, HasSubstr("after loading the checkpoint of step 1, "));
  EXPECT_EQ(judged("cuda", 0, 1e-3).reason, "resume-off") << "a state that the optimizer lost";
}

TEST_F(JudgeTest, AnImpossibleShapeIsBlamedAsWhatIsWrong) {
  observation_.ending.kind = EndingKind::kRaised;
  observation_.exceptions = {
      {.type = "WrongShape",
       .message = "no logits",
       .frames = {{.file = "bkm_cell/adapters/base.py", .owner = FrameOwner::kHarness}}}};
  observation_.stages = {{Stage::kForward, std::nullopt}};
  observation_.steps.clear();
  input_.packages.engine = "";
  const Verdict verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kWrong);
  EXPECT_EQ(verdict.reason, "wrong-shape");
  EXPECT_EQ(verdict.blame, std::vector<std::string>{"library"});
}

TEST_F(JudgeTest, NumbersAloneAreWrongAtGolden) {
  cell_.tensors[1].log_probs[0] = -8;
  const Verdict verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kWrong);
  EXPECT_EQ(verdict.stage, Stage::kGolden);
  EXPECT_EQ(verdict.reason, "log-probs-off");
}

TEST_F(JudgeTest, MissingWitnessCannotBeOkButDoesNotHideWhatIsWrong) {
  observation_.layers.clear();
  Verdict verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kUnsupported);
  EXPECT_EQ(verdict.stage, Stage::kBackend);
  EXPECT_EQ(verdict.reason, "witness-missing");
  EXPECT_THAT(verdict.blame, ElementsAre("harness"));
  observation_.reach->moved = {0, 1, 2, 3};
  verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kWrong);
  EXPECT_EQ(verdict.stage, Stage::kMask);
}

TEST_F(JudgeTest, AnotherPrecisionThanAskedIsNeverOk) {
  input_.probe.precision = "fp32";
  Verdict verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kWrong);
  EXPECT_EQ(verdict.reason, "precision-ignored");
  EXPECT_EQ(OutcomeOf(verdict, "numbers"), ClaimOutcome::kPassed)
      << "its numbers are compared with the floor of the precision that ran";
  observation_.precision_ran = "fp32";
  verdict = Judged();
  EXPECT_EQ(verdict.reason, "precision-ignored") << "in training only";
}

TEST_F(JudgeTest, CorruptOrMissingFilesAreNotTheSubjectsFault) {
  ASSERT_EQ(Judged().kind, VerdictKind::kOk);
  ASSERT_TRUE(WriteFile(input_.cell_dir / "step1.safetensors", "cut off").ok());
  const Verdict verdict = Judge(input_);
  EXPECT_EQ(verdict.kind, VerdictKind::kUnsupported);
  EXPECT_EQ(verdict.stage, Stage::kMask);
  EXPECT_EQ(verdict.reason, "evidence-unreadable");
  EXPECT_THAT(verdict.message, ::testing::HasSubstr("step1.safetensors"));
}

// What the machine failed to compute says nothing about the pair, and hides nothing that does.
TEST_F(JudgeTest, AReferenceThatTheMachineFailedToComputeIsSpurious) {
  const auto expect_spurious = [&](const char* what) {
    const Verdict verdict = Judged();
    EXPECT_EQ(verdict.kind, VerdictKind::kSpurious) << what;
    EXPECT_EQ(verdict.stage, Stage::kGolden) << what;
    EXPECT_EQ(verdict.reason, "reference-missing") << what;
    EXPECT_EQ(verdict.message, what);
    EXPECT_THAT(verdict.blame, ElementsAre("harness"));
  };
  reference_.floors.insert_or_assign("bf16", absl::UnavailableError("the floor is missing"));
  expect_spurious("the floor is missing");
  reference_.golden = absl::UnavailableError("the golden is missing");
  expect_spurious("the golden is missing");
  observation_.reach.reset();
  EXPECT_EQ(Judged().kind, VerdictKind::kUnsupported) << "a lack of the harness";
  observation_.layers[0].class_name = "VarlenAttention";
  EXPECT_EQ(Judged().kind, VerdictKind::kWrong);
}

TEST_F(JudgeTest, GoldenThatCannotBeReadLeavesOtherChecksStanding) {
  reference_.golden = absl::NotFoundError("golden.safetensors: no such file");
  EXPECT_EQ(Judged().message, "golden.safetensors: no such file");
  EXPECT_EQ(Judged().kind, VerdictKind::kUnsupported);
  observation_.reach->moved = {0, 1, 2, 3};
  EXPECT_EQ(Judged().reason, "mask-leak");
}

TEST_F(JudgeTest, WrongIsTheLibrarysWhereTheLibraryAloneIsWrong) {
  observation_.reach->moved = {0, 1, 2, 3};
  EXPECT_THAT(Judged().blame, IsEmpty());
  Verdict control = {.kind = VerdictKind::kWrong, .stage = Stage::kMask, .reason = "mask-leak"};
  input_.control_verdict = &control;
  EXPECT_THAT(Judged().blame, ElementsAre("library"));
  control = {.kind = VerdictKind::kOk, .stage = Stage::kGolden};
  EXPECT_THAT(Judged().blame, ElementsAre("interface"));
  control = {.kind = VerdictKind::kBroken, .stage = Stage::kImport};
  EXPECT_THAT(Judged().blame, IsEmpty());
  input_.packages.engine = "";
  EXPECT_THAT(Judged().blame, ElementsAre("library"));
}

TEST_F(JudgeTest, StoppedCellIsBrokenWithEarlierMismatchesAsEvidence) {
  const Observation control = GroupedQueries(false);
  const auto layers = observation_.layers;
  observation_ = GroupedQueries(true);
  observation_.layers = layers;
  input_.probe = Asking("varlen");
  input_.control = &control;
  input_.reference = nullptr;
  const Verdict verdict = Judge(input_);
  EXPECT_EQ(verdict.kind, VerdictKind::kBroken);
  EXPECT_EQ(verdict.stage, Stage::kForward);
  EXPECT_EQ(verdict.reason, "value-error");
  EXPECT_THAT(verdict.blame, ElementsAre("library", "runtime"));
  EXPECT_EQ(verdict.last_stage, Stage::kMask);
  EXPECT_EQ(OutcomeOf(verdict, "backend"), ClaimOutcome::kFailed);
  ASSERT_FALSE(verdict.exceptions.empty());
  EXPECT_EQ(verdict.exceptions[0].owner, "torch");
}

TEST_F(JudgeTest, RefusalIsBlamedOnWhoRefused) {
  const Observation control = observation_;
  observation_ = VerlAttnTypeNotSupported();
  input_.probe = Asking("sdpa");
  input_.control = &control;
  const Verdict verdict = Judge(input_);
  EXPECT_EQ(verdict.kind, VerdictKind::kRefused);
  EXPECT_EQ(verdict.stage, Stage::kConstruct);
  EXPECT_THAT(verdict.blame, ElementsAre("engine"));
}

TEST_F(JudgeTest, ControlThatSaysNothingLeavesBlameEmpty) {
  Observation control;
  control.ending.kind = EndingKind::kLost;
  observation_ = NoMatchingFlavor();
  input_.control = &control;
  EXPECT_THAT(Judge(input_).blame, IsEmpty());
  control.ending.kind = EndingKind::kCompleted;
  EXPECT_THAT(Judge(input_).blame, ElementsAre("engine"));
}

TEST_F(JudgeTest, SpuriousCellIsNobodysFault) {
  observation_ = Observation();
  observation_.ending.kind = EndingKind::kLost;
  input_.control = &observation_;
  const Verdict verdict = Judge(input_);
  EXPECT_EQ(verdict.kind, VerdictKind::kSpurious);
  EXPECT_THAT(verdict.blame, IsEmpty());
}

// It has another attention, whose masks are not those that were asked for: no failure of its own.
TEST_F(JudgeTest, ALibraryThatWasNotAskedFailsNothing) {
  input_.packages.engine = "";
  observation_.not_asked = "the library has one attention";
  observation_.layers[0].class_name = "VarlenAttention";
  observation_.reach->moved = {0, 1, 2, 3};
  const Verdict verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kUnsupported);
  EXPECT_EQ(verdict.reason, "not-offered") << verdict.message;
  EXPECT_EQ(OutcomeOf(verdict, "mask"), ClaimOutcome::kFailed);
  EXPECT_THAT(verdict.Failed(), IsEmpty());
  EXPECT_FALSE(ToJson(verdict).contains("failures"));
}

TEST_F(JudgeTest, StepsWhoseForwardsNobodyCountedAreNotOk) {
  observation_.steps[1].forwards.reset();
  const Verdict verdict = Judged();
  EXPECT_EQ(verdict.kind, VerdictKind::kUnsupported);
  EXPECT_EQ(verdict.reason, reason::kWitnessMissing);
  EXPECT_EQ(OutcomeOf(verdict, "micro_batches"), ClaimOutcome::kUnseen);
}

TEST_F(JudgeTest, EveryFindingIsOfAKnownClaim) {
  input_.probe.export_weights = input_.probe.resume_checkpoint = true;
  input_.probe.layout = *ParseLayout("dp_shard=2");
  std::set<std::string> known;
  for (const Claim* claim : Claims()) known.insert(claim->name);
  const Verdict verdict = Judged();
  for (const Finding& finding : verdict.findings)
    EXPECT_TRUE(known.erase(finding.claim)) << finding.claim;
  EXPECT_THAT(known, ElementsAre("buffers", "data", "expert_balance", "sharding"))
      << "no buffers, no trainer, no experts and nothing to shard by are here";
}

TEST_F(JudgeTest, VerdictSurvivesItsJson) {
  const Json written = ToJson(Judged());
  EXPECT_EQ(ToJson(*VerdictFromJson(*ParseJson(ToLine(written), "v"), "v")), written);
}

TEST_F(JudgeTest, AStandInIsSaidInTheVerdict) {
  observation_.stand_ins = {"flash_attn"};
  const Verdict verdict = Judged();  // its calls are read
  EXPECT_EQ(verdict.kind, VerdictKind::kOk) << verdict.message;
  EXPECT_THAT(verdict.message,
              HasSubstr("stand-in kernel: bkm's flash_attn stands in for the real one"));
  EXPECT_THAT(verdict.blind, ElementsAre(HasSubstr("the kernels of flash_attn themselves")));
  EXPECT_THAT(OutlineOf(verdict).stand_ins, ElementsAre("flash_attn"));
  observation_.forward_in_fp32_error = "NotInFp32: it also computes in bfloat16";
  EXPECT_THAT(Judged().blind, Contains(HasSubstr("could not be repeated in fp32 (NotInFp32: it "
                                                 "also computes in bfloat16)")));
  observation_.stand_ins_hide = {"flash_attn 2.7.4"};
  EXPECT_THAT(Judged().message,
              HasSubstr("stands in for the real one (flash_attn 2.7.4 is installed, and was not "
                        "imported: it needs a GPU)"));
  observation_.stand_ins.clear();
  EXPECT_EQ(StandInNote(Judged()), "");
}

}  // namespace
}  // namespace bkm
