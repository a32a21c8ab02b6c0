// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/rank_check.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/judge/argument_check.h"
#include "harness/judge/case_file.h"
#include "harness/judge/claims.h"
#include "harness/judge/numbers_check.h"

namespace bkm {
namespace {

std::string RankOf(int64_t rank, const Layout& layout) {
  return absl::StrCat("rank ", rank, " of ", layout.ranks());
}

// The documents of each step must be dealt to the data-parallel ranks without a gap or an overlap.
std::optional<std::string> MisdealtDocuments(const std::vector<ObservedRank>& ranks,
                                             const Layout& layout) {
  std::set<int64_t> data_ranks;
  for (const ObservedRank& rank : ranks) {
    if (rank.data_rank < 0 || rank.data_rank >= layout.data_ranks() ||
        rank.data_ranks != layout.data_ranks())
      return absl::StrCat(RankOf(rank.rank, layout), " says it is data-parallel rank ",
                          rank.data_rank, " of ", rank.data_ranks, ", and the layout has ",
                          layout.data_ranks());
    data_ranks.insert(rank.data_rank);
  }
  for (int64_t one = 0; one < layout.data_ranks(); ++one) {
    if (!data_ranks.contains(one))
      return absl::StrCat("no rank says that it is data-parallel rank ", one, " of ",
                          layout.data_ranks(), ": its documents are trained by nobody");
  }
  return std::nullopt;
}

// Whether the layout acts: a rank that shares a sequence has a part of its tokens, and one that
// shares the model a part of its parameters.
CheckResult CheckPart(const ObservedRank& rank, const Layout& layout) {
  const bool shares_sequence = layout.cp * layout.ulysses > 1;
  const bool shares_model = layout.dp_shard * layout.tp * layout.pp * layout.ep > 1;
  const std::string who = RankOf(rank.rank, layout);
  if ((shares_sequence || shares_model) && !rank.part)
    return CheckResult::Unseen(Stage::kLoad, absl::StrCat("nobody saw what ", who, " has"));
  if (shares_model && rank.part->parameters >= rank.part->of_parameters)
    return CheckResult::Failed(
        Stage::kLoad, reason::kOverrideIgnored,
        absl::StrCat("asked for ", LayoutText(layout), ", but ", who, " holds all ",
                     rank.part->of_parameters, " parameters"));
  if (!shares_sequence) return CheckResult::Passed(Stage::kLoad);
  if (!rank.part->tokens)
    return CheckResult::Unseen(Stage::kForward,
                               absl::StrCat("nobody saw which tokens ", who, " was given"));
  if (*rank.part->tokens >= rank.part->of_tokens)
    return CheckResult::Failed(
        Stage::kForward, reason::kOverrideIgnored,
        absl::StrCat("asked for ", LayoutText(layout), ", but ", who, " was given all ",
                     rank.part->of_tokens, " tokens of its documents"));
  return CheckResult::Passed(Stage::kForward);
}

CheckResult CheckOne(const Observation& observation, const ObservedRank& rank, const Probe& probe,
                     const AskedAttention& asked, const std::vector<DocumentLengths>& documents) {
  if (rank.precision_ran != observation.precision_ran)
    return CheckResult::Failed(
        Stage::kForward, reason::kPrecisionIgnored,
        absl::StrCat(RankOf(rank.rank, probe.layout), " ran ", rank.precision_ran,
                     ", and rank 0 ran ", observation.precision_ran));
  Observation own = observation;
  static_cast<ObservedBackend&>(own) = rank;
  for (ObservedStep& step : own.steps) {
    const auto at = static_cast<size_t>(rank.rank);
    const ObservedRankStep seen =
        at < step.of_ranks.size() ? step.of_ranks[at] : ObservedRankStep();
    step.attention_nodes = seen.attention_nodes;
    step.forwards = seen.forwards;
  }
  CheckResult result = CheckBackend(own, asked);
  if (result.outcome == ClaimOutcome::kPassed)
    result = CheckArguments(probe, own, DocumentsOf(probe, observation, rank, documents));
  if (!result.message.empty())
    result.message = absl::StrCat(RankOf(rank.rank, probe.layout), ": ", result.message);
  return result;
}

std::string Describe(const ObservedRankDifference& difference, const Layout& layout) {
  absl::string_view name = difference.name;
  std::string what(name);
  for (const auto& [prefix, words] : {std::pair<const char*, const char*>{"grad/", "gradient of "},
                                      {"loaded/", "parameter "},
                                      {"held/", "parameter "},
                                      {"before/", "parameter (before the update) "},
                                      {"after/", "parameter (after the update) "}}) {
    if (absl::StartsWith(name, prefix))
      what = absl::StrCat(words, name.substr(std::string(prefix).size()));
  }
  return absl::StrFormat("in %s %s has another %s than a lower rank%s", difference.when,
                         RankOf(difference.rank, layout), what,
                         difference.largest
                             ? absl::StrFormat(" (largest difference %.3g)", *difference.largest)
                             : " (another shape or type, or none)");
}

}  // namespace

CheckResult CheckRanks(const Observation& observation, const Probe& probe,
                       const AskedAttention& asked, const std::vector<DocumentLengths>& documents,
                       const DifferenceInFloors& floors) {
  const Layout& layout = probe.layout;
  if (layout == Layout()) return CheckResult::Passed(Stage::kGolden);
  const std::vector<ObservedRank>& ranks = observation.ranks;
  Json evidence = {{"ranks", ranks.size()}, {"differences", observation.rank_differences.size()}};
  if (ranks.size() != static_cast<size_t>(layout.ranks()))
    return CheckResult::Unseen(
        Stage::kStep,
        absl::StrCat(ranks.size(), " of ", layout.ranks(), " ranks said what they did"),
        std::move(evidence));
  for (const ObservedRank& rank : ranks) {
    if (rank.ended != "done")
      return CheckResult::Unseen(
          Stage::kStep, absl::StrCat(RankOf(rank.rank, layout), " did not finish: ", rank.ended),
          std::move(evidence));
    const size_t steps_told = probe.drive == "trainer"
                                  ? DocumentsOf(probe, observation, rank, documents).size()
                                  : rank.documents.size();
    if (steps_told < static_cast<size_t>(probe.steps))
      return CheckResult::Unseen(
          Stage::kLoad,
          absl::StrCat(RankOf(rank.rank, layout), " did not say which documents it has"),
          std::move(evidence));
  }
  if (const auto misdealt = MisdealtDocuments(ranks, layout))
    return CheckResult::Failed(Stage::kLoad, reason::kRankDocuments, *misdealt,
                               std::move(evidence));
  for (const ObservedRank& rank : ranks) {
    CheckResult part = CheckPart(rank, layout);
    if (part.outcome != ClaimOutcome::kPassed) return part;
  }
  for (const ObservedRank& rank : ranks) {
    if (rank.rank == 0) continue;
    CheckResult own = CheckOne(observation, rank, probe, asked, documents);
    if (own.outcome != ClaimOutcome::kPassed) return own;
  }
  if (!observation.rank_differences.empty()) {
    std::vector<FailedPlace> places;
    for (const ObservedRankDifference& difference : observation.rank_differences)
      places.push_back({absl::StrCat(difference.when, ", ", difference.name),
                        Describe(difference, layout), floors(difference)});
    CheckResult failed =
        CheckResult::Failed(Stage::kGolden, reason::kRanksDiffer, "", std::move(evidence))
            .At(std::move(places));
    failed.message = failed.places.front().what;
    return failed;
  }
  return CheckResult::Passed(Stage::kGolden, std::move(evidence));
}

namespace {

// At least so many floors: a difference in one element is no more than that of the whole tensor.
std::optional<double> FloorsOf(const ObservedRankDifference& difference, const CaseFile& file) {
  const ReferenceData& reference = file.reference();
  const auto floor = FloorOf(file.input);
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
                           : file.probe().optimizer.learning_rate;
  return scale > 0 ? std::optional<double>(InFloors(*difference.largest / scale, allowed->second))
                   : std::nullopt;
}

CheckResult CheckRanksOf(const CaseFile& file) {
  const absl::StatusOr<AskedAttention> asked = AskedOf(file);
  if (!asked.ok()) return CheckResult::Unreadable(Stage::kBackend, asked.status());
  return CheckRanks(
      file.seen(), file.probe(), *asked, DocumentsOf(file),
      [&](const ObservedRankDifference& difference) { return FloorsOf(difference, file); });
}

bool HasLayout(const CaseFile& file) {
  return file.has_finished && file.probe().layout != Layout();
}

}  // namespace

extern const Claim kRanksClaim = {
    .name = "ranks",
    .rung = Stage::kGolden,
    .asked_by = "layout",
    .says = "several ranks compute what one computes",
    .witness =
        "the same fp64 golden: log-probs of all ranks' documents, gathered gradients, "
        "parameters and norm, in each training step; who attends to whom on any rank, in the "
        "whole batch, also where ranks are given parts of one row (context and sequence "
        "parallelism); each rank's attention, by backend and arguments; the bits of what "
        "ranks must share; which documents the engine says that each rank gets",
    .cannot_see = "what gloo does not do as NCCL does: overlapping, streams, symmetric memory",
    .applies = HasLayout,
    .check = CheckRanksOf,
};

}  // namespace bkm
