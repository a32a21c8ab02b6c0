// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/judge.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/check.h"
#include "harness/base/shown_text.h"
#include "harness/base/status_macros.h"
#include "harness/judge/argument_check.h"
#include "harness/judge/backend_check.h"
#include "harness/judge/check_result.h"
#include "harness/judge/diagnosis.h"
#include "harness/judge/ending.h"
#include "harness/judge/exception_reason.h"
#include "harness/judge/exception_text.h"
#include "harness/judge/export_check.h"
#include "harness/judge/gradient_relation.h"
#include "harness/judge/load_check.h"
#include "harness/judge/mask_check.h"
#include "harness/judge/micro_batch_check.h"
#include "harness/judge/model_check.h"
#include "harness/judge/numbers_check.h"
#include "harness/judge/optimizer_check.h"
#include "harness/judge/precision_check.h"
#include "harness/judge/rank_check.h"
#include "harness/judge/rank_diagnosis.h"
#include "harness/judge/reasons.h"
#include "harness/judge/relation.h"
#include "harness/judge/resume_check.h"
#include "harness/numerics/model_shapes.h"

namespace bkm {
namespace {

struct NamedCheck {
  const char* name;
  CheckResult result;
};

std::vector<ToldException> TellExceptions(const Observation& observation) {
  std::vector<ToldException> chain;
  for (const ObservedException& exception : observation.exceptions) {
    ToldException& told = chain.emplace_back(ToldException{.what = DescribeException(exception)});
    if (const ObservedFrame* frame = DeepestFrame(exception)) {
      told.owner = std::string(Name(frame->owner));
      told.statement = frame->statement;
      told.source = frame->text;
    }
  }
  return chain;
}

// The floor of the precision that the cell ran.
absl::StatusOr<const std::vector<FloorStep>*> FloorOf(const JudgeInput& input) {
  const std::string precision = PrecisionOf(*input.observation, input.probe);
  const auto floor = input.reference->floors.find(precision);
  if (floor == input.reference->floors.end()) {
    return absl::NotFoundError(
        absl::StrCat("there is no floor for the precision ", precision, ", which the cell ran"));
  }
  RETURN_IF_ERROR(floor->second.status());
  return &*floor->second;
}

// For a cell that stopped, only what it did wrong before counts.
absl::StatusOr<AskedAttention> AskedOf(const JudgeInput& input, bool has_finished) {
  ASSIGN_OR_RETURN(const ModelShape shape, ShapeOf(input.probe));
  return AskedAttention{.name = input.probe.attention,
                        .layers = shape.layers,
                        .steps = has_finished ? input.probe.steps : 0,
                        .of_control = input.packages.engine.empty()};
}

CheckResult CheckBackendOf(const JudgeInput& input, bool has_finished) {
  const absl::StatusOr<AskedAttention> asked = AskedOf(input, has_finished);
  if (!asked.ok()) return CheckResult::Unreadable(Stage::kBackend, asked.status());
  return CheckBackend(*input.observation, *asked);
}

// At least so many floors: a difference in one element is no more than that of the whole tensor.
std::optional<double> FloorsOf(const ObservedRankDifference& difference, const JudgeInput& input) {
  const ReferenceData& reference = *input.reference;
  const auto floor = FloorOf(input);
  if (!difference.largest || !reference.golden.ok() || reference.golden->empty() || !floor.ok() ||
      (*floor)->empty())
    return std::nullopt;
  const GoldenStep& golden = reference.golden->front();
  const FloorStep& floors = (*floor)->front();
  if (difference.name == "log_probs")
    return InFloors(*difference.largest, floors.reports.log_probs.max);
  if (difference.name == "grad_norm")
    return InFloors(*difference.largest / golden.total_norm, floors.total_norm);
  const size_t slash = difference.name.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const std::string tensor = difference.name.substr(slash + 1);
  const auto expected = golden.tensors.find(tensor);
  const auto allowed = floors.gradients.find(tensor);
  if (expected == golden.tensors.end() || allowed == floors.gradients.end() ||
      expected->second.gradient_norm == 0)
    return std::nullopt;
  // A parameter moves by about the learning rate, whatever its gradient.
  const double scale = absl::StartsWith(difference.name, "grad/")
                           ? expected->second.gradient_norm
                           : input.probe.optimizer.learning_rate;
  return scale > 0 ? std::optional<double>(InFloors(*difference.largest / scale, allowed->second))
                   : std::nullopt;
}

CheckResult CheckRanksOf(const JudgeInput& input) {
  const absl::StatusOr<AskedAttention> asked = AskedOf(input, /*has_finished=*/true);
  if (!asked.ok()) return CheckResult::Unreadable(Stage::kBackend, asked.status());
  return CheckRanks(
      *input.observation, input.probe, *asked,
      [&](const ObservedRankDifference& difference) { return FloorsOf(difference, input); });
}

// fp32 master weights, unless verl's engine option asks for others.
std::string ParameterTypeOf(const Probe& probe) {
  const auto option = probe.engine_options.find("model_dtype");
  if (option == probe.engine_options.end()) return "fp32";
  return absl::StrContains(option->second, "bf") ? "bf16" : "fp32";
}

CheckResult CheckLoadOf(const JudgeInput& input) {
  if (!input.reference->weights.ok())
    return CheckResult::Unreadable(Stage::kGolden, input.reference->weights.status());
  return CheckLoad(input.observation->load, input.observation->held, *input.reference->weights,
                   PrecisionOf(*input.observation, input.probe));
}

CheckResult CheckBuffersOf(const JudgeInput& input) {
  if (!input.reference->buffers.ok())
    return CheckResult::Unreadable(Stage::kGolden, input.reference->buffers.status());
  return CheckBuffers(input.observation->load_buffers, *input.reference->buffers,
                      PrecisionOf(*input.observation, input.probe));
}

// On a GPU, a log-prob that changes by less than this counts as unchanged.
constexpr double kReachNoise = 1e-6;

absl::StatusOr<Relations> ReadRelationsOf(const JudgeInput& input, int64_t tokens) {
  if (input.observation->attended.empty()) return Relations();
  return ReadRelations(input.cell_dir, tokens);
}

// The training steps whose masks are compared: all, or those before the cell stopped. A step of
// several micro-batches is not read.
std::vector<StepMasks> StepMasksOf(const JudgeInput& input, bool has_finished) {
  std::vector<StepMasks> masks;
  if (input.probe.micro_batches > 1) return masks;
  const std::vector<ObservedStep>& steps = input.observation->steps;
  const std::vector<PackedBatch>& batches = input.reference->folder->steps;
  const size_t count = has_finished ? batches.size() : std::min(steps.size(), batches.size());
  for (size_t k = 0; k < count; ++k) {
    masks.push_back({PackedDocuments(batches[k].document_lengths), Relations()});
    if (k < steps.size() && !steps[k].attended.empty())
      masks.back().relations =
          ReadStepRelations(input.cell_dir, steps[k].tensors, masks.back().documents.tokens());
  }
  return masks;
}

CheckResult CheckModelOf(const JudgeInput& input) {
  const absl::StatusOr<ModelShape> shape = ShapeOf(input.probe);
  if (!shape.ok()) return CheckResult::Unreadable(Stage::kLoad, shape.status());
  return CheckModel(input.observation->model, *shape);
}

CheckResult CheckMaskOf(const JudgeInput& input, bool has_finished) {
  if (!input.reference->folder.ok())
    return CheckResult::Unreadable(Stage::kMask, input.reference->folder.status());
  const ProbeFolder& folder = *input.reference->folder;
  const absl::StatusOr<ModelShape> shape = ShapeOf(input.probe);
  if (!shape.ok()) return CheckResult::Unreadable(Stage::kMask, shape.status());
  AskedMasks asked = {PackedDocuments(folder.steps[folder.reach.step].document_lengths),
                      {},
                      input.probe.device == "cpu" ? 0 : kReachNoise,
                      input.probe.head == "lm"};
  for (const ObservedRank& rank : input.observation->ranks) {
    const auto step = static_cast<size_t>(folder.reach.step);
    if (step >= rank.documents.size()) continue;
    const auto [first, count] = rank.documents[step];
    if (first >= 0 && count > 0 && first + count <= asked.documents.count())
      asked.rows.emplace_back(first, count);
  }
  const auto floor = FloorOf(input);
  if (shape->experts.count > 0 && floor.ok())
    asked.rounding = kFloorMultiple * (**floor)[folder.reach.step].reports.log_probs.q99;
  for (int64_t layer = 0; layer < shape->layers; ++layer)
    asked.windows.push_back(shape->WindowOf(layer));
  return CheckMask(*input.observation, asked, ReadRelationsOf(input, asked.documents.tokens()),
                   StepMasksOf(input, has_finished));
}

absl::StatusOr<ForwardOnly> ForwardOnlyOf(const JudgeInput& input) {
  ForwardOnly forward = {.step = static_cast<size_t>(input.reference->folder->reach.step)};
  if (!input.observation->forward_only) return forward;
  forward.log_probs_dtype = input.observation->forward_only->log_probs_dtype;
  ASSIGN_OR_RETURN(forward.log_probs,
                   ReadForwardOnly("log_probs", *input.observation->forward_only, input.cell_dir));
  forward.entropy_dtype = input.observation->forward_only->entropy_dtype;
  ASSIGN_OR_RETURN(forward.entropy,
                   ReadForwardOnly("entropy", *input.observation->forward_only, input.cell_dir));
  return forward;
}

// A golden or floor that cannot be read.
CheckResult WithoutReference(Stage stage, const absl::Status& status) {
  CheckResult result = CheckResult::Unreadable(stage, status);
  if (absl::IsUnavailable(status)) result.reason = reason::kReferenceMissing;
  return result;
}

CheckResult CheckNumbersOf(const JudgeInput& input, std::span<const ObservedStep> reported,
                           const std::vector<StepTensors>& steps) {
  const ReferenceData& reference = *input.reference;
  if (!reference.folder.ok())
    return CheckResult::Unreadable(Stage::kGolden, reference.folder.status());
  if (!reference.golden.ok()) return WithoutReference(Stage::kGolden, reference.golden.status());
  const auto floor = FloorOf(input);
  if (!floor.ok()) return WithoutReference(Stage::kGolden, floor.status());
  absl::StatusOr<ForwardOnly> forward = ForwardOnlyOf(input);
  if (!forward.ok()) return CheckResult::Unreadable(Stage::kForward, forward.status());
  return CheckNumbers({reported, steps, reference.folder->steps, *reference.golden, **floor,
                       *std::move(forward),
                       AverageMultiple(PrecisionOf(*input.observation, input.probe))});
}

CheckResult CheckExportOf(const JudgeInput& input, const std::vector<StepTensors>& steps) {
  const ReferenceData& reference = *input.reference;
  for (const absl::Status& status :
       {reference.folder.status(), reference.weights.status(), reference.buffers.status()}) {
    if (!status.ok()) return CheckResult::Unreadable(Stage::kExport, status);
  }
  if (!reference.golden.ok()) return WithoutReference(Stage::kExport, reference.golden.status());
  std::map<std::string, ObservedTensor> file = *reference.weights;
  file.insert(reference.buffers->begin(), reference.buffers->end());
  if (!input.observation->exported || steps.empty() || reference.golden->size() < 2)
    return CheckResult::Unseen(Stage::kExport, "no exported weights were seen");
  const ObservedExport& exported = *input.observation->exported;
  const absl::StatusOr<ExportTensors> tensors = ReadExport(exported, input.cell_dir);
  if (!tensors.ok()) return CheckResult::Unreadable(Stage::kExport, tensors.status());
  // Training in bf16 has a wider floor than rounding an fp32 model's weights has.
  const bool trained_in_bf16 = PrecisionOf(*input.observation, input.probe) == "bf16";
  const std::string precision = trained_in_bf16 ? "bf16" : PrecisionOf(exported);
  const auto floor = reference.floors.find(precision);
  const bool has_floor = floor != reference.floors.end() && floor->second.ok();
  return CheckExport({.seen = exported,
                      .tensors = *tensors,
                      .file = file,
                      .trained = steps.front(),
                      .batch = reference.folder->steps[1],
                      .golden = (*reference.golden)[1],
                      .floor = has_floor ? &(*floor->second)[1] : nullptr,
                      .average_multiple = AverageMultiple(precision)});
}

// Which of the model's gradients the samples lack, as a clause; empty if none.
std::string UnseenGradients(const JudgeInput& input, const std::vector<StepTensors>& steps) {
  const auto& weights = input.reference->weights;
  if (!weights.ok() || steps.empty()) return "";
  if (const size_t seen = steps.front().tensors.size(); seen < weights->size())
    return absl::StrCat("the gradients of ", seen, " of ", weights->size(), " tensors were seen");
  if (ElementsBeyond(input.observation->held, *weights) > 0)
    return "the gradients of parameters that the file lacks were not seen";
  return "";
}

CheckResult CheckOptimizerOf(const JudgeInput& input, std::span<const ObservedStep> reported,
                             const std::vector<StepTensors>& steps) {
  return CheckOptimizer(input.probe.optimizer, reported, steps, ParameterTypeOf(input.probe),
                        UnseenGradients(input, steps));
}

CheckResult CheckResumeOf(const JudgeInput& input, const std::vector<StepTensors>& steps) {
  const std::vector<ObservedStep>& resumed = input.observation->resumed;
  const absl::StatusOr<std::vector<StepTensors>> tensors = ReadSteps(resumed, input.cell_dir);
  if (!tensors.ok()) return CheckResult::Unreadable(Stage::kResume, tensors.status());
  const bool repeats = input.probe.device == "cpu";
  CheckResult result = CheckResume(input.observation->checkpoint_files,
                                   {input.observation->steps, steps}, {resumed, *tensors}, repeats);
  if (repeats || result.outcome != ClaimOutcome::kPassed) return result;
  // The first step and the resumed ones are a whole run: its updates show a lost state of the
  // optimizer, its numbers all else.
  std::vector<ObservedStep> reported = {input.observation->steps.front()};
  reported.insert(reported.end(), resumed.begin(), resumed.end());
  std::vector<StepTensors> spliced = {steps.front()};
  spliced.insert(spliced.end(), tensors->begin(), tensors->end());
  for (CheckResult check :
       {CheckOptimizerOf(input, reported, spliced), CheckNumbersOf(input, reported, spliced)}) {
    if (check.outcome == ClaimOutcome::kPassed) continue;
    check.stage = Stage::kResume;
    if (check.outcome == ClaimOutcome::kFailed) {
      check.reason = reason::kResumeOff;
      check.message = absl::StrCat("after loading the checkpoint of step 1, ", check.message);
    }
    return check;
  }
  return result;
}

// The predicted wrong answer that a wrong cell gave, if any.
std::optional<Diagnosis> DiagnoseOf(const JudgeInput& input,
                                    const absl::StatusOr<std::vector<StepTensors>>& steps) {
  const ReferenceData& reference = *input.reference;
  const auto floor = FloorOf(input);
  if (!reference.folder.ok() || !reference.golden.ok() || !floor.ok() || !steps.ok())
    return std::nullopt;
  return NearestWrongAnswer(
      {input.observation->steps, *steps, reference.folder->steps, *reference.golden, **floor});
}

// The factor between the gradients of a wrong cell's first step and the right ones, if there is
// one.
std::optional<std::string> FactorOf(const JudgeInput& input,
                                    const absl::StatusOr<std::vector<StepTensors>>& steps) {
  const ReferenceData& reference = *input.reference;
  const auto floor = FloorOf(input);
  if (!reference.golden.ok() || reference.golden->empty() || !floor.ok() || (*floor)->empty() ||
      !steps.ok() || steps->empty() || !input.observation->steps[0].grad_norm)
    return std::nullopt;
  const GoldenStep& golden = (*reference.golden)[0];
  return DescribeFactor({.seen = (*steps)[0].tensors,
                         .seen_norm = *input.observation->steps[0].grad_norm,
                         .golden = golden.tensors,
                         .golden_norm = golden.total_norm,
                         .clip_norm = input.probe.optimizer.clip_norm,
                         .floor = (**floor)[0].gradients},
                        input.probe.layout);
}

// What is wrong with a cell of several ranks, in terms of its ranks.
RankDiagnosis RankDiagnosisOf(const JudgeInput& input,
                              const absl::StatusOr<std::vector<StepTensors>>& steps) {
  const ReferenceData& reference = *input.reference;
  const auto floor = FloorOf(input);
  if (!reference.folder.ok() || !reference.golden.ok() || !floor.ok() || !steps.ok()) return {};
  return DiagnoseRanks({.probe = input.probe,
                        .observation = *input.observation,
                        .folder = *reference.folder,
                        .golden = *reference.golden,
                        .floor = **floor,
                        .steps = *steps});
}

// Ordered by precedence within one stage: weights that were not loaded explain numbers that are
// off.
std::vector<NamedCheck> ChecksOfTraining(const JudgeInput& input,
                                         const absl::StatusOr<std::vector<StepTensors>>& steps) {
  std::vector<NamedCheck> checks;
  checks.push_back({"backend", CheckBackendOf(input, /*has_finished=*/true)});
  if (input.probe.layout != Layout()) checks.push_back({"ranks", CheckRanksOf(input)});
  checks.push_back({"mask", CheckMaskOf(input, /*has_finished=*/true)});
  checks.push_back({"arguments", CheckArguments(input.probe, *input.observation)});
  checks.push_back({"precision", CheckPrecision(*input.observation, input.probe.precision)});
  checks.push_back({"load", CheckLoadOf(input)});
  if (const auto& buffers = input.reference->buffers; !buffers.ok() || !buffers->empty())
    checks.push_back({"buffers", CheckBuffersOf(input)});
  checks.push_back({"model", CheckModelOf(input)});
  checks.push_back({"micro_batches", CheckMicroBatches(input.probe, input.observation->steps)});
  if (!steps.ok()) {
    checks.push_back({"numbers", CheckResult::Unreadable(Stage::kGolden, steps.status())});
    return checks;
  }
  const std::vector<ObservedStep>& reported = input.observation->steps;
  checks.push_back({"optimizer", CheckOptimizerOf(input, reported, *steps)});
  checks.push_back({"numbers", CheckNumbersOf(input, reported, *steps)});
  return checks;
}

// Which of the rungs after training can be judged.
struct HandedOver {
  bool exported = true, resumed = true;
};

// Of a cell that stopped at one of them: those before, and a checkpoint that was never written,
// from which nothing can resume.
HandedOver HandedOverBefore(const Stop& stop, const Observation& observation) {
  return {.exported = stop.stage > Stage::kExport,
          .resumed = stop.stage == Stage::kResume && observation.checkpoint_files == 0};
}

// What the probe asks for after training.
std::vector<NamedCheck> ChecksOfHandOver(const JudgeInput& input,
                                         const absl::StatusOr<std::vector<StepTensors>>& steps,
                                         HandedOver which) {
  std::vector<NamedCheck> checks;
  if (!steps.ok()) return checks;
  if (input.probe.export_weights && which.exported)
    checks.push_back({"export", CheckExportOf(input, *steps)});
  if (input.probe.resume_checkpoint && which.resumed)
    checks.push_back({"resume", CheckResumeOf(input, *steps)});
  return checks;
}

// The check of the earliest stage among those that cannot decide, or nullptr.
const CheckResult* FirstGap(const std::vector<NamedCheck>& checks) {
  const CheckResult* first = nullptr;
  for (const auto& [name, result] : checks) {
    const bool counts =
        result.outcome == ClaimOutcome::kUnseen || result.outcome == ClaimOutcome::kUnreadable;
    if (counts && (first == nullptr || result.stage < first->stage)) first = &result;
  }
  return first;
}

// What fails: a claim, which may be one of several of its check.
struct Failing {
  const char* check;
  const CheckResult* result;
};

// Whether the claim is about what the numbers come from: they follow from it, not it from them.
bool IsCause(const Failing& failing) { return failing.check != absl::string_view("numbers"); }

// Orders failing claims: the one that explains most first. What is plainly not as asked comes
// first, by stage. What is a matter of more or less is ordered by its size; a cause explains
// numbers that are up to kExplained times further off than itself. What comes after training
// explains nothing before.
bool ExplainsMore(const Failing& a, const Failing& b) {
  constexpr double kExplained = 100;
  const auto key = [](const Failing& failing) {
    const CheckResult& result = *failing.result;
    const bool is_plain = !result.size().has_value();
    const double size = result.size().value_or(0) * (IsCause(failing) ? kExplained : 1);
    return std::tuple(result.stage > Stage::kGolden, !is_plain,
                      is_plain ? result.stage : Stage::kGolden, -size);
  };
  return key(a) < key(b);
}

std::vector<Failing> FailingOf(const std::vector<NamedCheck>& checks) {
  std::vector<Failing> first, all;
  for (const auto& [name, result] : checks) {
    if (result.outcome == ClaimOutcome::kFailed) first.push_back({name, &result});
  }
  std::stable_sort(first.begin(), first.end(), ExplainsMore);
  // A check knows which of its own claims explains the others.
  for (const Failing& failing : first) {
    all.push_back(failing);
    for (const CheckResult& further : failing.result->further)
      all.push_back({failing.check, &further});
  }
  return all;
}

Finding FindingOf(const char* claim, const CheckResult& result) {
  // A model has hundreds of tensors, and a cell some steps.
  constexpr size_t kMostPlaces = 1000;
  Finding finding = result;
  finding.claim = claim;
  if (finding.places.size() > kMostPlaces) {
    finding.places_left_out = finding.places.size() - kMostPlaces;
    finding.places.resize(kMostPlaces);
  }
  return finding;
}

// Those that failed first, with all their places.
std::vector<Finding> FindingsOf(const std::vector<NamedCheck>& checks) {
  std::vector<Finding> findings;
  for (const Failing& failing : FailingOf(checks))
    findings.push_back(FindingOf(failing.check, *failing.result));
  for (const auto& [name, result] : checks) {
    if (result.outcome != ClaimOutcome::kFailed) findings.push_back(FindingOf(name, result));
  }
  return findings;
}

// Blame for a cell that finished and is wrong: the library if the control is wrong in the same way,
// the interface if the control is right.
std::vector<std::string> BlameForWrong(const JudgeInput& input, const CheckResult& failure) {
  if (input.packages.engine.empty()) return {"library"};
  const Verdict* control = input.control_verdict;
  if (control == nullptr) return {};
  if (control->kind == VerdictKind::kOk) return {"interface"};
  if (control->kind == VerdictKind::kWrong && control->stage == failure.stage &&
      control->reason == failure.reason)
    return {"library"};
  return {};
}

Verdict FromCheck(VerdictKind kind, const CheckResult& check, std::vector<Finding> findings,
                  std::vector<std::string> blame) {
  return {kind, check.stage, check.reason, check.message, std::move(blame), std::move(findings)};
}

// Errors that would pass. See docs/verdicts.md.
std::vector<std::string> BlindOf(const NumbersFacts& numbers, const Observation& observation,
                                 const Probe& probe) {
  std::vector<std::string> blind;
  if (const std::optional<BlindGradients>& gradients = numbers.blind_gradients)
    blind.push_back(absl::StrCat("errors of 100 % in the gradients of ", gradients->tensors, " of ",
                                 gradients->of, " tensors"));
  if (observation.precision_ran == "fp32") return blind;  // the numbers of fp32 show the others
  if (observation.model.rope_frequencies.empty())
    blind.push_back("small errors in the frequencies of the rotary embedding");
  const absl::StatusOr<ModelShape> shape = ShapeOf(probe);
  if (numbers.least_log_probs_mean && shape.ok() && shape->experts.count > 0)
    blind.push_back(absl::StrFormat(
        "errors in the choice or the weights of experts that move log-probs by less than %.2g "
        "nats a token, unless the reference predicts them",
        *numbers.least_log_probs_mean));
  return blind;
}

std::string SayOk(const Probe& probe, const NumbersFacts& numbers, const Observation& observation) {
  const QuantityFacts* log_probs = numbers.Find("log_probs_mean");
  return absl::StrFormat(
      "%d steps agree with the golden: log-probs within %.1f times the floor%s%s%s",
      observation.steps.size(), log_probs ? log_probs->multiple.value_or(0) : 0,
      probe.export_weights ? "; transformers computes the same with the exported weights" : "",
      probe.resume_checkpoint ? "; a fresh engine continues from its checkpoint bit by bit" : "",
      observation.crashes > 0 ? "; a first run ended by a signal" : "");
}

Verdict JudgeFinished(const JudgeInput& input, HandedOver which) {
  HARNESS_CHECK(input.reference != nullptr) << "a finished cell is judged without reference data";
  const absl::StatusOr<std::vector<StepTensors>> steps =
      ReadSteps(input.observation->steps, input.cell_dir);
  std::vector<NamedCheck> checks = ChecksOfTraining(input, steps);
  for (NamedCheck& check : ChecksOfHandOver(input, steps, which))
    checks.push_back(std::move(check));
  std::vector<Finding> findings = FindingsOf(checks);
  // A library that was never asked was not given what it was asked for either.
  const auto not_offered = std::find_if(checks.begin(), checks.end(), [](const NamedCheck& check) {
    return check.result.reason == reason::kNotOffered;
  });
  if (not_offered != checks.end())
    return FromCheck(VerdictKind::kUnsupported, not_offered->result, std::move(findings), {});
  if (const std::vector<Failing> failing = FailingOf(checks); !failing.empty()) {
    const CheckResult& failure = *failing.front().result;
    Verdict verdict =
        FromCheck(VerdictKind::kWrong, failure, std::move(findings), BlameForWrong(input, failure));
    verdict.diagnosis = DiagnoseOf(input, steps);
    if (verdict.diagnosis) absl::StrAppend(&verdict.message, "; ", Describe(*verdict.diagnosis));
    const RankDiagnosis ranks = RankDiagnosisOf(input, steps);
    if (const auto factor = ranks.has_factors ? std::nullopt : FactorOf(input, steps)) {
      verdict.factor = *factor;
      absl::StrAppend(&verdict.message, "; ", *factor);
      if (!ranks.reductions.empty())
        absl::StrAppend(&verdict.message, " (they went through ", ranks.reductions, ")");
    }
    for (const std::string& clause : ranks.clauses) absl::StrAppend(&verdict.message, "; ", clause);
    verdict.ranks = ranks.clauses;
    return verdict;
  }
  if (const CheckResult* gap = FirstGap(checks)) {
    const bool machine = gap->reason == reason::kReferenceMissing;
    return FromCheck(machine ? VerdictKind::kSpurious : VerdictKind::kUnsupported, *gap,
                     std::move(findings), {"harness"});
  }
  Verdict verdict{
      .kind = VerdictKind::kOk, .stage = Stage::kGolden, .findings = std::move(findings)};
  const auto numbers = FactsOf<NumbersFacts>(verdict.Find("numbers"));
  verdict.message = SayOk(input.probe, numbers, *input.observation);
  verdict.blind = BlindOf(numbers, *input.observation, input.probe);
  for (const std::string& errors : verdict.blind)
    absl::StrAppend(&verdict.message, "; ", errors, " would pass");
  return verdict;
}

// Messages quote names of subjects, which can be long and have line ends.
std::string OneSentence(absl::string_view message) {
  constexpr size_t kLongest = 2000;
  std::string sentence = ShownText(message);
  std::replace(sentence.begin(), sentence.end(), '\n', ' ');
  if (sentence.size() <= kLongest) return sentence;
  size_t end = kLongest;  // never in the middle of a UTF-8 character
  while (end > 0 && (static_cast<unsigned char>(sentence[end]) & 0xC0) == 0x80) --end;
  return absl::StrCat(sentence.substr(0, end), "...");
}

// The control, unless its ending says nothing about the library.
const Observation* UsableControl(const JudgeInput& input) {
  if (input.control == nullptr) return nullptr;
  const std::optional<Stop> stop = ClassifyEnding(*input.control, input.probe);
  const bool says_nothing =
      stop && (stop->kind == VerdictKind::kSpurious || stop->kind == VerdictKind::kUnsupported);
  return says_nothing ? nullptr : input.control;
}

// What a CPU cannot run says nothing about the pair. That a message says so is the subject's word,
// which excuses nothing; that the library alone stops in the same way was seen in another cell.
Stop WithControl(const JudgeInput& input, Stop stop) {
  const ObservedException* exception = DecidingException(*input.observation);
  const Observation* control = UsableControl(input);
  const bool is_red = stop.kind == VerdictKind::kBroken || stop.kind == VerdictKind::kRefused;
  if (!is_red || input.packages.engine.empty() || control == nullptr || exception == nullptr ||
      !NeedsOtherHardware(*exception, input.probe) ||
      !ControlStopsAlike(*input.observation, *control))
    return stop;
  stop.kind = VerdictKind::kUnsupported;
  stop.reason = reason::kDeviceMissing;
  absl::StrAppend(&stop.message, "; the library alone stops in the same way");
  return stop;
}

// Where and by what the cell stopped.
Verdict WithEnding(const Observation& observation, Verdict verdict) {
  verdict.last_stage = observation.LastStage();
  verdict.exceptions = TellExceptions(observation);
  return verdict;
}

Verdict JudgeStopped(const JudgeInput& input, const Stop& stop) {
  // Earlier mismatches may be the cause.
  std::vector<NamedCheck> checks;
  if (!input.observation->layers.empty() || !input.observation->called.empty())
    checks.push_back({"backend", CheckBackendOf(input, /*has_finished=*/false)});
  if (!input.observation->load.empty() && input.reference != nullptr)
    checks.push_back({"load", CheckLoadOf(input)});
  std::optional<CheckResult> wrong_mask;
  if (!input.observation->attended.empty() && input.reference != nullptr) {
    const CheckResult mask = CheckMaskOf(input, /*has_finished=*/false);
    checks.push_back({"mask", mask});
    if (mask.outcome == ClaimOutcome::kFailed) wrong_mask = mask;
  }
  // What this machine cannot run takes nothing from what was seen on it.
  if (wrong_mask && stop.reason == reason::kDeviceMissing) {
    absl::StrAppend(&wrong_mask->message, "; then the cell stopped: ", stop.message);
    return WithEnding(*input.observation,
                      FromCheck(VerdictKind::kWrong, *wrong_mask, FindingsOf(checks),
                                BlameForWrong(input, *wrong_mask)));
  }
  // What was already wrong must not hide behind what stopped the cell.
  const std::string also =
      wrong_mask ? absl::StrCat("; before it stopped, ", wrong_mask->message) : "";
  std::vector<std::string> blame;
  if (stop.kind == VerdictKind::kWrong)
    blame = BlameForWrong(input, CheckResult::Failed(stop.stage, stop.reason.c_str(), ""));
  if (stop.reason == reason::kHarnessError) blame = {"harness"};
  if (stop.kind == VerdictKind::kBroken || stop.kind == VerdictKind::kRefused)
    blame = BlameForStop(*input.observation, input.packages, UsableControl(input));
  return WithEnding(*input.observation, {.kind = stop.kind,
                                         .stage = stop.stage,
                                         .reason = stop.reason,
                                         .message = absl::StrCat(stop.message, also),
                                         .blame = std::move(blame),
                                         .findings = FindingsOf(checks)});
}

// Says of each engine option whether it acts. One that was accepted and does nothing, or of which
// nobody knows, is not wrong, but nobody should believe that it was tested.
void TellEffects(const JudgeInput& input, Verdict& verdict) {
  if (!SaysSomething(verdict)) return;
  const SeenCell cell = {input.observation, input.lines, input.cell_dir};
  for (const OptionTwin& twin : input.twins) {
    const OptionEffect& effect = verdict.effects.emplace_back(EffectOf(cell, twin));
    if (verdict.kind != VerdictKind::kOk) continue;
    if (effect.kind == EffectKind::kNotObserved)
      absl::StrAppend(&verdict.message, "; ", twin.option,
                      " was accepted, and no effect of it was observed");
    if (effect.kind == EffectKind::kUnknown)
      absl::StrAppend(&verdict.message, "; whether ", twin.option,
                      " acts is unknown: ", effect.seen);
  }
}

}  // namespace

std::string PrecisionOf(const Observation& observation, const Probe& probe) {
  return observation.precision_ran.empty() ? probe.precision : observation.precision_ran;
}

Verdict Judge(const JudgeInput& input) {
  HARNESS_CHECK(input.observation != nullptr) << "nothing to judge";
  std::optional<Stop> stop = ClassifyEnding(*input.observation, input.probe);
  if (stop) stop = WithControl(input, *std::move(stop));
  Verdict verdict = stop ? JudgeStopped(input, *stop) : JudgeFinished(input, HandedOver());
  // It was trained to the end: what is wrong before it stopped comes first.
  if (stop && stop->stage > Stage::kGolden && input.reference != nullptr) {
    Verdict trained = JudgeFinished(input, HandedOverBefore(*stop, *input.observation));
    if (trained.kind == VerdictKind::kWrong) verdict = std::move(trained);
  }
  TellEffects(input, verdict);
  verdict.message = OneSentence(verdict.message);
  return verdict;
}

}  // namespace bkm
