// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/resume_check.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/judge/case_file.h"
#include "harness/judge/cell_files.h"
#include "harness/judge/claims.h"
#include "harness/judge/numbers_check.h"
#include "harness/judge/optimizer_check.h"

namespace bkm {
namespace {

// How far two lists of numbers are apart; nullopt if they are equal. NaN differs from everything.
std::optional<double> Difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return INFINITY;
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest == 0 ? std::nullopt : std::optional(largest);
}

std::vector<double> ListOf(const std::optional<double>& value) {
  return value ? std::vector{*value} : std::vector<double>{};
}

struct ResumedQuantity {
  std::string name;
  std::vector<double> uninterrupted, resumed;
  bool is_computed = true;  // by the step, not loaded or scheduled
};

// The numbers of one step, causes before consequences. The last token's log-prob has no label, but
// is computed all the same.
std::vector<ResumedQuantity> QuantitiesOf(const ObservedStep& run, const StepTensors& run_tensors,
                                          const ObservedStep& again,
                                          const StepTensors& again_tensors, bool is_first) {
  std::vector<ResumedQuantity> quantities;
  const auto each_tensor = [&](const char* what, auto values, bool is_computed = true) {
    for (const auto& [name, tensor] : run_tensors.tensors) {
      const auto other = again_tensors.tensors.find(name);
      quantities.push_back(
          {absl::StrCat(what, " ", name), values(tensor),
           other == again_tensors.tensors.end() ? std::vector<double>{} : values(other->second),
           is_computed});
    }
  };
  each_tensor(
      "the parameter before the step,", [](const SampledTensor& t) { return t.before; },
      /*is_computed=*/!is_first);
  quantities.push_back({"the log-probs", run_tensors.log_probs, again_tensors.log_probs});
  quantities.push_back({"the loss", ListOf(run.loss), ListOf(again.loss)});
  quantities.push_back({"the total gradient norm", ListOf(run.grad_norm), ListOf(again.grad_norm)});
  each_tensor("the gradient of", [](const SampledTensor& t) { return t.gradient; });
  quantities.push_back({"the learning rate", ListOf(run.learning_rate), ListOf(again.learning_rate),
                        /*is_computed=*/false});
  each_tensor("the parameter after the step,", [](const SampledTensor& t) { return t.after; });
  each_tensor("the norms of", [](const SampledTensor& t) {
    return std::vector<double>(t.norms.begin(), t.norms.end());
  });
  return quantities;
}

// The number of the first uninterrupted step that had these documents; empty if none had.
std::string StepWith(const std::vector<int64_t>& documents, std::span<const ObservedStep> steps) {
  for (size_t k = 0; k < steps.size(); ++k) {
    if (steps[k].documents == documents)
      return absl::StrCat(", which step ", k + 1, " had in the uninterrupted run");
  }
  return "";
}

// The documents that a trainer gave to steps after the restart, in its order.
std::optional<CheckResult> OtherDocuments(const StepsSeen& uninterrupted,
                                          const StepsSeen& resumed) {
  for (size_t k = 1; k < uninterrupted.reported.size(); ++k) {
    const std::vector<int64_t>& run = uninterrupted.reported[k].documents;
    const std::vector<int64_t>& again = resumed.reported[k - 1].documents;
    if (run == again) continue;
    return CheckResult::Failed(
        Stage::kResume, reason::kResumeOff,
        absl::StrCat("after loading the checkpoint of step 1, step ", k + 1, " has ",
                     again.empty() ? "documents that are none of the data file's"
                                   : absl::StrCat("the documents ", absl::StrJoin(again, ", ")),
                     " instead of ", absl::StrJoin(run, ", "),
                     StepWith(again, uninterrupted.reported)),
        {{"step", k + 1}, {"documents", again}, {"uninterrupted", run}});
  }
  return std::nullopt;
}

}  // namespace

CheckResult CheckResume(std::optional<int64_t> files, const StepsSeen& uninterrupted,
                        const StepsSeen& resumed, bool repeats) {
  if (files == 0)
    return CheckResult::Failed(Stage::kResume, reason::kResumeOff,
                               "saving a checkpoint after step 1 raised nothing and wrote no file");
  const size_t steps = uninterrupted.reported.size();
  if (steps < 2 || resumed.reported.size() + 1 != steps)
    return CheckResult::Unseen(
        Stage::kResume,
        absl::StrCat(resumed.reported.size(), " steps after the restart were seen, not ",
                     std::max<size_t>(steps, 1) - 1));
  if (std::optional<CheckResult> other = OtherDocuments(uninterrupted, resumed)) return *other;
  if (!MovedParameters(uninterrupted.tensors[0]))
    return CheckResult::Unseen(Stage::kResume,
                               "step 1 changed no parameter, so a checkpoint without weights would "
                               "pass, too");
  for (size_t k = 1; k < steps; ++k) {
    if (uninterrupted.tensors[k].tensors.empty() || uninterrupted.tensors[k].log_probs.empty())
      return CheckResult::Unseen(Stage::kResume,
                                 absl::StrCat("the numbers of step ", k + 1, " were not seen"));
    for (const ResumedQuantity& quantity :
         QuantitiesOf(uninterrupted.reported[k], uninterrupted.tensors[k], resumed.reported[k - 1],
                      resumed.tensors[k - 1], /*is_first=*/k == 1)) {
      const auto difference = Difference(quantity.uninterrupted, quantity.resumed);
      if (!difference || (!repeats && quantity.is_computed && std::isfinite(*difference))) continue;
      Json evidence = {{"step", k + 1}, {"quantity", quantity.name}};
      std::string by;
      if (std::isfinite(*difference)) {
        evidence["difference"] = *difference;
        by = absl::StrCat(" by ", *difference);
      }
      return CheckResult::Failed(
          Stage::kResume, reason::kResumeOff,
          absl::StrCat("after loading the checkpoint of step 1, ", quantity.name,
                       " differs in step ", k + 1, by, " from the uninterrupted run"),
          std::move(evidence));
    }
  }
  return CheckResult::Passed(Stage::kResume, {{"steps", steps - 1}});
}

namespace {

CheckResult CheckResumeOf(const CaseFile& file) {
  const std::vector<StepTensors>& steps = *file.steps;
  const std::vector<ObservedStep>& resumed = file.seen().resumed;
  const absl::StatusOr<std::vector<StepTensors>> tensors = ReadSteps(resumed, file.input.cell_dir);
  if (!tensors.ok()) return CheckResult::Unreadable(Stage::kResume, tensors.status());
  const bool repeats = file.probe().device == "cpu";
  CheckResult result = CheckResume(file.seen().checkpoint_files, {file.seen().steps, steps},
                                   {resumed, *tensors}, repeats);
  if (repeats || result.outcome != ClaimOutcome::kPassed) return result;
  // The first step and the resumed ones are a whole run: its updates show a lost state of the
  // optimizer, its numbers all else.
  std::vector<ObservedStep> reported = {file.seen().steps.front()};
  reported.insert(reported.end(), resumed.begin(), resumed.end());
  std::vector<StepTensors> spliced = {steps.front()};
  spliced.insert(spliced.end(), tensors->begin(), tensors->end());
  for (CheckResult check :
       {CheckOptimizerOf(file, reported, spliced), CheckNumbersOf(file, reported, spliced)}) {
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

bool AsksToResume(const CaseFile& file) {
  return file.has_finished && file.steps.ok() && file.probe().resume_checkpoint && file.has_resumed;
}

}  // namespace

extern const Claim kResumeClaim = {
    .name = "resume",
    .rung = Stage::kResume,
    .asked_by = "resume_checkpoint",
    .says = "training goes on from a checkpoint as if it had not stopped",
    .witness =
        "a fresh engine in the same process (a trainer in a fresh one, by its own option) loads "
        "the "
        "checkpoint of step 1 and repeats steps 2 and 3: documents, loss, norm, learning rate, "
        "log-probs, sampled gradients and parameters are equal bit by bit",
    .cannot_see =
        "of an engine a process that starts anew; without a warm-up or a decay, a schedule that is "
        "not restored; offloading (the engine's `to()` is called, but on a CPU nothing moves)",
    .applies = AsksToResume,
    .check = CheckResumeOf,
};

}  // namespace bkm
