// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/option_effect.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/json_facts.h"
#include "harness/base/status_macros.h"
#include "harness/judge/step_files.h"

namespace bkm {
namespace {

using Line = std::pair<std::string, int64_t>;

// The lines of the subjects that ran in any phase.
std::set<Line> LinesOf(const Json& phases) {
  std::set<Line> lines;
  for (const auto& [phase, parties] : phases.items()) {
    for (const auto& [party, files] : parties.items()) {
      if (!files.is_object()) continue;
      for (const auto& [file, numbers] : files.items()) {
        if (!numbers.is_array()) continue;
        for (const Json& number : numbers) {
          if (number.is_number_integer()) lines.emplace(file, number.get<int64_t>());
        }
      }
    }
  }
  return lines;
}

std::string SayLines(const std::set<Line>& ours, const std::set<Line>& others,
                     absl::string_view which) {
  std::vector<Line> only;
  std::set_difference(ours.begin(), ours.end(), others.begin(), others.end(),
                      std::back_inserter(only));
  if (only.empty()) return "";
  return absl::StrCat(only.size(), only.size() == 1 ? " line runs only " : " lines run only ",
                      which, " it, first ", only.front().first, ":", only.front().second);
}

// What a cell's attention, steps and ranks were made of, by name.
std::map<std::string, std::string> FactsOf(const Observation& seen) {
  std::map<std::string, std::string> facts = {
      {"the ops of the forward", absl::StrJoin(seen.ops, ",")},
      {"the attention that is called", absl::StrJoin(seen.called, ",")},
      {"the precision", seen.precision_ran}};
  std::string& built = facts["the modules of the attention"];
  for (const ObservedLayer& layer : seen.layers) absl::StrAppend(&built, layer.class_name, ";");
  std::string& kernels = facts["the kernels of the attention"];
  for (const ObservedKernels& layer : seen.kernels)
    absl::StrAppend(&kernels, layer.layer, absl::StrJoin(layer.forward, ","), "|",
                    absl::StrJoin(layer.backward, ","), "|", absl::StrJoin(layer.calls, ","), ";");
  std::string& held = facts["what the model holds"];
  if (seen.held) held = absl::StrCat(seen.held->numel);
  std::string &steps = facts["the calls of the model"], &products = facts["the matrix products"],
              &optimizer = facts["the optimizer"];
  for (const ObservedStep& step : seen.steps) {
    absl::StrAppend(&steps, step.forwards.value_or(0), ";");
    for (const auto& [type, count] : step.products) absl::StrAppend(&products, type, count, ";");
    absl::StrAppend(&optimizer, step.optimizer_class, step.param_groups.size(), ";");
  }
  std::string& collectives = facts["the collectives"];
  for (const ObservedRank& rank : seen.ranks) {
    for (const ObservedCollective& call : rank.collectives)
      absl::StrAppend(&collectives, call.op, call.reduce, call.ranks, call.dtype, call.stage,
                      call.calls, "x", call.elements, ";");
  }
  return facts;
}

// The first number of a step that differs; empty if all are the same. An error if files of numbers
// cannot be read, and no number beside them differs.
absl::StatusOr<std::string> OtherNumbers(const SeenCell& cell, const SeenCell& twin) {
  const auto& ours = cell.observation->steps;
  const auto& others = twin.observation->steps;
  for (size_t k = 0; k < std::min(ours.size(), others.size()); ++k) {
    if (ours[k].loss != others[k].loss) return absl::StrCat("the loss of step ", k + 1);
    if (ours[k].grad_norm != others[k].grad_norm)
      return absl::StrCat("the gradient norm of step ", k + 1);
  }
  ASSIGN_OR_RETURN(const std::vector<StepTensors> a, ReadSteps(ours, cell.cell_dir));
  ASSIGN_OR_RETURN(const std::vector<StepTensors> b, ReadSteps(others, twin.cell_dir));
  for (size_t k = 0; k < std::min(a.size(), b.size()); ++k) {
    if (a[k].log_probs != b[k].log_probs) return absl::StrCat("log-probs of step ", k + 1);
    for (const auto& [name, tensor] : a[k].tensors) {
      const auto other = b[k].tensors.find(name);
      if (other == b[k].tensors.end() || other->second.gradient != tensor.gradient ||
          other->second.after != tensor.after)
        return absl::StrCat(name, " in step ", k + 1);
    }
  }
  return "";
}

}  // namespace

OptionEffect EffectOf(const SeenCell& cell, const OptionTwin& twin) {
  OptionEffect effect{.option = twin.option};
  if (cell.observation == nullptr || twin.seen.observation == nullptr) {
    effect.seen = twin.missing;
    return effect;
  }
  const Observation &with = *cell.observation, &without = *twin.seen.observation;
  std::vector<std::string> differences;
  if (with.ending.kind != without.ending.kind) differences.push_back("how the cell ends");
  if (cell.lines != nullptr && twin.seen.lines != nullptr) {
    const std::set<Line> ours = LinesOf(*cell.lines), others = LinesOf(*twin.seen.lines);
    for (std::string text : {SayLines(ours, others, "with"), SayLines(others, ours, "without")}) {
      if (!text.empty()) differences.push_back(std::move(text));
    }
  }
  const auto facts = FactsOf(with), others = FactsOf(without);
  for (const auto& [name, value] : facts) {
    if (others.at(name) != value) differences.push_back(name);
  }
  const absl::StatusOr<std::string> numbers = OtherNumbers(cell, twin.seen);
  if (numbers.ok() && !numbers->empty()) differences.push_back(*numbers);
  if (differences.empty() && !numbers.ok()) {
    effect.seen =
        absl::StrCat("the numbers of the steps cannot be compared: ", numbers.status().message());
    return effect;
  }
  effect.kind = differences.empty() ? EffectKind::kNotObserved : EffectKind::kActs;
  effect.seen = absl::StrJoin(differences, "; ");
  return effect;
}

}  // namespace bkm
