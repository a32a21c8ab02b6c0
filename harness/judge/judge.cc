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
#include "harness/judge/case_file.h"
#include "harness/judge/claims.h"
#include "harness/judge/diagnosis.h"
#include "harness/judge/ending.h"
#include "harness/judge/exception_reason.h"
#include "harness/judge/exception_text.h"
#include "harness/judge/gradient_relation.h"
#include "harness/judge/numbers_check.h"
#include "harness/judge/rank_diagnosis.h"
#include "harness/judge/reasons.h"
#include "harness/numerics/model_shapes.h"

namespace bkm {

extern const Claim kMaskClaim, kNumbersClaim;

namespace {

struct CheckedClaim {
  const Claim* claim;
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

// The claims that the cell makes, by precedence.
std::vector<CheckedClaim> ChecksOf(const CaseFile& file) {
  std::vector<CheckedClaim> checks;
  for (const Claim* claim : Claims()) {
    if (claim->applies(file)) checks.push_back({claim, claim->check(file)});
  }
  return checks;
}

// The check of the earliest stage among those that cannot decide, or nullptr.
const CheckResult* FirstGap(const std::vector<CheckedClaim>& checks) {
  const CheckResult* first = nullptr;
  for (const auto& [claim, result] : checks) {
    const bool counts =
        result.outcome == ClaimOutcome::kUnseen || result.outcome == ClaimOutcome::kUnreadable;
    if (counts && (first == nullptr || result.stage < first->stage)) first = &result;
  }
  return first;
}

// What fails: a claim, which may be one of several of its check.
struct Failing {
  const Claim* claim;
  const CheckResult* result;
};

// Whether the claim is about what the numbers come from: they follow from it, not it from them.
bool IsCause(const Failing& failing) { return failing.claim != &kNumbersClaim; }

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

std::vector<Failing> FailingOf(const std::vector<CheckedClaim>& checks) {
  std::vector<Failing> first, all;
  for (const auto& [claim, result] : checks) {
    if (result.outcome == ClaimOutcome::kFailed) first.push_back({claim, &result});
  }
  std::stable_sort(first.begin(), first.end(), ExplainsMore);
  // A check knows which of its own claims explains the others.
  for (const Failing& failing : first) {
    all.push_back(failing);
    for (const CheckResult& further : failing.result->further)
      all.push_back({failing.claim, &further});
  }
  return all;
}

Finding FindingOf(const Claim& claim, const CheckResult& result) {
  // A model has hundreds of tensors, and a cell some steps.
  constexpr size_t kMostPlaces = 1000;
  Finding finding = result;
  finding.claim = claim.name;
  if (finding.places.size() > kMostPlaces) {
    finding.places_left_out = finding.places.size() - kMostPlaces;
    finding.places.resize(kMostPlaces);
  }
  return finding;
}

// What the claims came to, into the verdict: those that failed first, with all their places.
Verdict WithFindings(Verdict verdict, const std::vector<CheckedClaim>& checks) {
  for (const Failing& failing : FailingOf(checks))
    verdict.findings.push_back(FindingOf(*failing.claim, *failing.result));
  verdict.failures = verdict.findings.size();
  for (const auto& [claim, result] : checks) {
    if (result.outcome != ClaimOutcome::kFailed)
      verdict.findings.push_back(FindingOf(*claim, result));
  }
  return verdict;
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

Verdict FromCheck(VerdictKind kind, const CheckResult& check, std::vector<std::string> blame,
                  const std::vector<CheckedClaim>& checks) {
  return WithFindings({kind, check.stage, check.reason, check.message, std::move(blame)}, checks);
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

// `stop`: where a cell that was trained to the end stopped after that.
Verdict JudgeFinished(const JudgeInput& input, const std::optional<Stop>& stop) {
  HARNESS_CHECK(input.reference != nullptr) << "a finished cell is judged without reference data";
  const absl::StatusOr<std::vector<StepTensors>> steps =
      ReadSteps(input.observation->steps, input.cell_dir);
  CaseFile file = {.input = input, .steps = steps};
  if (stop) {
    // The rungs before, and a checkpoint that was never written, from which nothing can resume.
    file.has_exported = stop->stage > Stage::kExport;
    file.has_resumed = stop->stage == Stage::kResume && file.seen().checkpoint_files == 0;
  }
  const std::vector<CheckedClaim> checks = ChecksOf(file);
  // A library that was never asked was not given what it was asked for either.
  const auto not_offered = std::find_if(
      checks.begin(), checks.end(),
      [](const CheckedClaim& check) { return check.result.reason == reason::kNotOffered; });
  if (not_offered != checks.end()) {
    Verdict verdict = FromCheck(VerdictKind::kUnsupported, not_offered->result, {}, checks);
    verdict.failures = 0;
    return verdict;
  }
  if (const std::vector<Failing> failing = FailingOf(checks); !failing.empty()) {
    const CheckResult& failure = *failing.front().result;
    Verdict verdict =
        FromCheck(VerdictKind::kWrong, failure, BlameForWrong(input, failure), checks);
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
                     {"harness"}, checks);
  }
  Verdict verdict = WithFindings({.kind = VerdictKind::kOk, .stage = Stage::kGolden}, checks);
  const auto numbers = FactsOf<NumbersFacts>(verdict.Find(kNumbersClaim.name));
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
  const absl::StatusOr<std::vector<StepTensors>> no_steps;
  const std::vector<CheckedClaim> checks =
      ChecksOf({.input = input, .steps = no_steps, .has_finished = false});
  std::optional<CheckResult> wrong_mask;
  for (const CheckedClaim& check : checks) {
    if (check.claim == &kMaskClaim && check.result.outcome == ClaimOutcome::kFailed)
      wrong_mask = check.result;
  }
  // What this machine cannot run takes nothing from what was seen on it.
  if (wrong_mask && stop.reason == reason::kDeviceMissing) {
    absl::StrAppend(&wrong_mask->message, "; then the cell stopped: ", stop.message);
    return WithEnding(*input.observation, FromCheck(VerdictKind::kWrong, *wrong_mask,
                                                    BlameForWrong(input, *wrong_mask), checks));
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
  return WithEnding(*input.observation, WithFindings({.kind = stop.kind,
                                                      .stage = stop.stage,
                                                      .reason = stop.reason,
                                                      .message = absl::StrCat(stop.message, also),
                                                      .blame = std::move(blame)},
                                                     checks));
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

// Says that code of ours ran where users have a kernel: what reached it is proven, it is not.
void TellStandIns(const Observation& observation, Verdict& verdict) {
  if (verdict.kind != VerdictKind::kOk && verdict.kind != VerdictKind::kWrong) return;
  verdict.stand_ins = observation.stand_ins;
  for (const std::string& package : verdict.stand_ins) {
    absl::StrAppend(&verdict.message, "; stand-in kernel: bkm's ", package,
                    " stands in for the real one");
    for (const std::string& hidden : observation.stand_ins_hide) {
      if (absl::StartsWith(hidden, package))
        absl::StrAppend(&verdict.message, " (", hidden,
                        " is installed, and was not imported: it needs a GPU)");
    }
    if (verdict.kind == VerdictKind::kOk)
      verdict.blind.push_back(
          absl::StrCat("the kernels of ", package, " themselves: a stand-in ran in their place"));
  }
  if (verdict.kind == VerdictKind::kOk && !observation.forward_in_fp32_error.empty())
    verdict.blind.push_back(
        absl::StrCat("what is smaller than bf16's rounding: the forward could not be repeated in "
                     "fp32 (",
                     observation.forward_in_fp32_error, ")"));
}

}  // namespace

Verdict Judge(const JudgeInput& input) {
  HARNESS_CHECK(input.observation != nullptr) << "nothing to judge";
  std::optional<Stop> stop = ClassifyEnding(*input.observation, input.probe);
  if (stop) stop = WithControl(input, *std::move(stop));
  Verdict verdict = stop ? JudgeStopped(input, *stop) : JudgeFinished(input, std::nullopt);
  // It was trained to the end: what is wrong before it stopped comes first.
  if (stop && stop->stage > Stage::kGolden && input.reference != nullptr) {
    Verdict trained = JudgeFinished(input, stop);
    if (trained.kind == VerdictKind::kWrong) verdict = std::move(trained);
  }
  TellEffects(input, verdict);
  TellStandIns(*input.observation, verdict);
  verdict.message = OneSentence(verdict.message);
  return verdict;
}

}  // namespace bkm
