// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/mask_check.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/judge/attention_vocabulary.h"
#include "harness/judge/case_file.h"
#include "harness/judge/claims.h"
#include "harness/judge/mask_difference.h"
#include "harness/judge/numbers_check.h"
#include "harness/numerics/model_shapes.h"

namespace bkm {
namespace {

struct LayerDifference {
  int64_t layer;
  int64_t asked_window;
  MaskDifference difference;
};

using Differences = std::vector<LayerDifference>;

struct LayerMasks {
  Differences wrong;
  int64_t count = 0;                      // layers that were compared
  const Relation* first_wrong = nullptr;  // the relation of wrong[0]
};

int64_t AskedWindow(const AskedMasks& asked, int64_t layer) {
  const bool is_known = layer >= 0 && layer < static_cast<int64_t>(asked.windows.size());
  return is_known ? asked.windows[layer] : 0;
}

LayerMasks CompareLayers(std::span<const ObservedRelation> attended, const AskedMasks& asked,
                         const Relations& relations) {
  LayerMasks masks;
  std::map<std::pair<std::string, int64_t>, MaskDifference> known;
  for (const ObservedRelation& seen : attended) {
    const auto relation = relations.find(seen.relation);
    if (relation == relations.end()) continue;
    const int64_t window = AskedWindow(asked, seen.layer);
    auto [it, is_new] = known.try_emplace({seen.relation, window});
    if (is_new) it->second = Compare(relation->second, asked.documents, window);
    ++masks.count;
    if (it->second.fault == MaskFault::kNone) continue;
    if (masks.wrong.empty()) masks.first_wrong = &relation->second;
    masks.wrong.push_back({seen.layer, window, it->second});
  }
  return masks;
}

// "in every layer", "in 2 of 8 layers (0, 4)".
std::string Where(const Differences& layers, int64_t count) {
  if (static_cast<int64_t>(layers.size()) == count) return "in every layer";
  std::vector<int64_t> numbers;
  for (const LayerDifference& layer : layers) numbers.push_back(layer.layer);
  return absl::StrCat("in ", numbers.size(), " of ", count, " layers (",
                      absl::StrJoin(numbers, ", "), ")");
}

std::string SayWindow(int64_t window) {
  return window == 0 ? std::string("none") : absl::StrCat(window, " tokens");
}

// 0 means no window, which is the widest.
bool IsWider(int64_t window, int64_t than) {
  return window != than && (window == 0 || (than != 0 && window > than));
}

struct MaskFinding {
  const char* reason;
  std::string what;
};

// For layers in which only the window is wrong.
MaskFinding JudgeWindows(const Differences& layers) {
  bool wider = false, narrower = false, next = true;
  std::multiset<int64_t> asked, seen;
  for (const LayerDifference& layer : layers) {
    const int64_t window = layer.difference.window;
    (IsWider(window, layer.asked_window) ? wider : narrower) = true;
    next = next && window > 0 && std::abs(window - layer.asked_window) == 1;
    asked.insert(layer.asked_window);
    seen.insert(window);
  }
  if (asked == seen || (wider && narrower))
    return {reason::kWindowWrongLayers, "windows are on the wrong layers"};
  const std::string windows =
      absl::StrCat("the window is ", SayWindow(layers.front().difference.window), " where ",
                   SayWindow(layers.front().asked_window), " is asked");
  if (next) return {reason::kMaskOffByOne, windows};
  return {wider ? reason::kWindowTooWide : reason::kWindowTooNarrow, windows};
}

// For layers that all have the same fault.
MaskFinding JudgeFault(const Differences& layers) {
  const MaskDifference& difference = layers.front().difference;
  switch (difference.fault) {
    case MaskFault::kWindow:
      return JudgeWindows(layers);
    case MaskFault::kBoundary:
      return {reason::kMaskOffByOne, "documents begin one token too early or too late"};
    case MaskFault::kOtherDocument:
      return {reason::kMaskLeak,
              difference.is_mutual ? "everything sees everything" : "documents see each other"};
    case MaskFault::kFuture:
      return {reason::kMaskFuture, "tokens see the future"};
    case MaskFault::kTooWide:
      return {reason::kWindowTooWide, "tokens see further back than the window"};
    default:
      return {reason::kMaskShort, "tokens do not see all of their own document's past"};
  }
}

std::vector<MaskFacts::Layer> LayerFacts(const LayerMasks& masks) {
  std::vector<MaskFacts::Layer> layers;
  for (const LayerDifference& layer : masks.wrong) {
    MaskFacts::Layer& facts =
        layers.emplace_back(MaskFacts::Layer{.layer = layer.layer,
                                             .fault = std::string(Name(layer.difference.fault)),
                                             .extra = layer.difference.extra,
                                             .missing = layer.difference.missing});
    if (layer.difference.fault == MaskFault::kWindow) {
      facts.window = SayWindow(layer.difference.window);
      facts.asked = SayWindow(layer.asked_window);
    }
  }
  return layers;
}

bool NoMaskReachedTheLayers(const Observation& observation) {
  return !observation.mask_calls.empty() &&
         std::all_of(observation.mask_calls.begin(), observation.mask_calls.end(),
                     [](const ObservedMaskCall& call) { return call.type == "NoneType"; });
}

// Changes the reason of a leak to mask-missing if no mask reached any layer that needs one.
CheckResult WithoutMask(const Observation& observation, const AskedMasks& asked,
                        CheckResult result) {
  const bool sees_too_much =
      result.reason == reason::kMaskLeak || result.reason == reason::kMaskFuture;
  if (asked.has_masks && sees_too_much && NoMaskReachedTheLayers(observation)) {
    result.reason = reason::kMaskMissing;
    result.message = absl::StrCat("no mask reached the layers, and ", result.message);
  }
  return result;
}

// If layers have different faults, the most serious one is reported.
CheckResult FailLayers(const LayerMasks& masks, Json evidence) {
  MaskFault gravest = MaskFault::kNone;
  for (const LayerDifference& layer : masks.wrong)
    gravest = std::min(gravest, layer.difference.fault);
  Differences alike;
  for (const LayerDifference& layer : masks.wrong) {
    if (layer.difference.fault == gravest) alike.push_back(layer);
  }
  const MaskFinding finding = JudgeFault(alike);
  evidence.update(FactsJson(MaskFacts{.layers = LayerFacts(masks)}));
  return CheckResult::Failed(Stage::kMask, finding.reason,
                             absl::StrCat(finding.what, " ", Where(alike, masks.count), ": ",
                                          alike.front().difference.example),
                             std::move(evidence));
}

Json Evidence(const Observation& observation, const AskedMasks& asked) {
  std::map<std::string, int64_t> types, owners;
  std::set<std::string> digests;
  for (const ObservedMaskCall& call : observation.mask_calls) {
    ++types[call.type];
    digests.insert(call.digest);
    if (!call.owner.empty()) ++owners[call.owner];
  }
  Json evidence = {{"types", types}, {"different_masks", digests.size()}};
  if (!owners.empty()) evidence["owners"] = owners;
  if (!observation.attended_error.empty()) evidence["attended_error"] = observation.attended_error;
  const std::set<int64_t> windows(asked.windows.begin(), asked.windows.end());
  if (windows.size() > 1 || (windows.size() == 1 && *windows.begin() > 0))
    evidence["windows"] = asked.windows;
  return evidence;
}

// The result of the first reach test that does not pass.
CheckResult CheckReaches(const Observation& observation, const AskedMasks& asked) {
  if (!observation.reach)
    return CheckResult::Unseen(Stage::kMask, "the reach test was not run, or its result was lost");
  CheckResult result = CheckReach(*observation.reach, asked);
  for (const ObservedReach& reach : observation.more_reaches) {
    if (result.outcome != ClaimOutcome::kPassed) break;
    CheckResult more = CheckReach(reach, asked);
    if (more.outcome != ClaimOutcome::kPassed) result = std::move(more);
  }
  return result;
}

// The layers in which nobody read who attends to whom. The reach test covers the whole stack only:
// a fault in one layer of many may move too little for it.
std::vector<int64_t> UnreadLayers(std::span<const ObservedRelation> attended,
                                  const AskedMasks& asked, const Relations& relations) {
  std::set<int64_t> read;
  for (const ObservedRelation& seen : attended) {
    if (relations.contains(seen.relation)) read.insert(seen.layer);
  }
  std::vector<int64_t> unread;
  for (int64_t layer = 0; layer < static_cast<int64_t>(asked.windows.size()); ++layer) {
    if (!read.contains(layer)) unread.push_back(layer);
  }
  return unread;
}

CheckResult Unread(const AskedMasks& asked, const std::vector<int64_t>& layers,
                   absl::string_view where, const std::string& error) {
  const std::string why = error.empty() ? "" : absl::StrCat(": ", error);
  return CheckResult::Unseen(
      Stage::kMask,
      absl::StrCat(where, "nobody read which query attends to which key in ", layers.size(), " of ",
                   asked.windows.size(), " layers (", absl::StrJoin(layers, ", "), ")", why));
}

// The first training step in which a layer's relation is wrong or was not read.
std::optional<CheckResult> CheckSteps(const Observation& observation, const AskedMasks& of_first,
                                      std::span<const StepMasks> steps, Json& evidence) {
  for (size_t k = 0; k < steps.size(); ++k) {
    const std::string where = absl::StrCat("in training step ", k + 1, " ");
    if (k >= observation.steps.size())
      return CheckResult::Unseen(Stage::kMask, absl::StrCat(where, "nothing was seen"));
    if (!steps[k].relations.ok())
      return CheckResult::Unreadable(Stage::kMask, steps[k].relations.status());
    const ObservedStep& step = observation.steps[k];
    AskedMasks asked = of_first;
    asked.documents = steps[k].documents;
    const LayerMasks masks = CompareLayers(step.attended, asked, *steps[k].relations);
    evidence["steps"].push_back({{"layers", masks.count}, {"wrong", masks.wrong.size()}});
    if (!masks.wrong.empty()) {
      evidence.update(
          FactsJson(MaskFacts{.picture = Picture(*masks.first_wrong, asked.documents)}));
      CheckResult failed = FailLayers(masks, evidence);
      failed.message = absl::StrCat(where, failed.message);
      return failed;
    }
    const std::vector<int64_t> unread = UnreadLayers(step.attended, asked, *steps[k].relations);
    if (!unread.empty()) return Unread(asked, unread, where, step.attended_error);
  }
  return std::nullopt;
}

}  // namespace

void Describe(Fields& fields, MaskFacts::Layer& layer) {
  fields.Field("layer", layer.layer);
  fields.Field("fault", layer.fault);
  fields.Field("extra", layer.extra);
  fields.Field("missing", layer.missing);
  fields.Field("window", layer.window);
  fields.Field("asked", layer.asked);
}

void Describe(Fields& fields, MaskFacts::Attended& attended) {
  fields.Field("layers", attended.layers);
  fields.Field("wrong", attended.wrong);
}

void Describe(Fields& fields, MaskFacts& facts) {
  fields.Field("attended", facts.attended);
  fields.Field("layers", facts.layers);
  fields.Field("picture", facts.picture);
}

CheckResult CheckMask(const Observation& observation, const AskedMasks& asked,
                      const absl::StatusOr<Relations>& relations,
                      std::span<const StepMasks> steps) {
  Json evidence = Evidence(observation, asked);
  CheckResult reaches = CheckReaches(observation, asked);
  for (const auto& [key, value] : reaches.facts.items()) evidence[key] = value;
  if (!observation.attended.empty()) {
    if (!relations.ok()) return CheckResult::Unreadable(Stage::kMask, relations.status());
    const LayerMasks masks = CompareLayers(observation.attended, asked, *relations);
    const MaskFacts::Attended attended = {masks.count, masks.wrong.size()};
    evidence.update(FactsJson(MaskFacts{.attended = attended}));
    if (!masks.wrong.empty()) {
      evidence.update(
          FactsJson(MaskFacts{.picture = Picture(*masks.first_wrong, asked.documents)}));
      return WithoutMask(observation, asked, FailLayers(masks, std::move(evidence)));
    }
  }
  std::optional<CheckResult> of_steps = CheckSteps(observation, asked, steps, evidence);
  if (of_steps && of_steps->outcome == ClaimOutcome::kFailed)
    return WithoutMask(observation, asked, *std::move(of_steps));
  if (reaches.outcome == ClaimOutcome::kPassed) {
    const std::vector<int64_t> unread =
        UnreadLayers(observation.attended, asked, relations.value_or(Relations()));
    if (!unread.empty())
      reaches = Unread(asked, unread, "", observation.attended_error);
    else if (of_steps)
      reaches = *std::move(of_steps);
  }
  reaches.facts = std::move(evidence);
  return WithoutMask(observation, asked, std::move(reaches));
}

namespace {

// On a GPU, a log-prob that changes by less than this counts as unchanged.
constexpr double kReachNoise = 1e-6;

absl::StatusOr<Relations> ReadRelationsOf(const CaseFile& file, int64_t tokens) {
  if (file.seen().attended.empty()) return Relations();
  return ReadRelations(file.input.cell_dir, tokens);
}

// The training steps whose masks are compared: all, or those before the cell stopped. A step of
// several micro-batches is not read.
std::vector<StepMasks> StepMasksOf(const CaseFile& file) {
  std::vector<StepMasks> masks;
  if (file.probe().micro_batches > 1) return masks;
  const std::vector<ObservedStep>& steps = file.seen().steps;
  const std::vector<PackedBatch>& batches = file.reference().folder->steps;
  const size_t count = file.has_finished ? batches.size() : std::min(steps.size(), batches.size());
  for (size_t k = 0; k < count; ++k) {
    masks.push_back({PackedDocuments(batches[k].document_lengths), Relations()});
    if (k < steps.size() && !steps[k].attended.empty())
      masks.back().relations =
          ReadStepRelations(file.input.cell_dir, steps[k].tensors, masks.back().documents.tokens());
  }
  return masks;
}

CheckResult CheckMaskOf(const CaseFile& file) {
  if (!file.reference().folder.ok())
    return CheckResult::Unreadable(Stage::kMask, file.reference().folder.status());
  const ProbeFolder& folder = *file.reference().folder;
  const absl::StatusOr<ModelShape> shape = ShapeOf(file.probe());
  if (!shape.ok()) return CheckResult::Unreadable(Stage::kMask, shape.status());
  AskedMasks asked = {PackedDocuments(folder.steps[folder.reach.step].document_lengths),
                      {},
                      file.probe().device == "cpu" ? 0 : kReachNoise,
                      file.probe().head == "lm"};
  const AttentionBackend* backend = AskedBackend(file.probe().attention);
  asked.has_masks = backend == nullptr || !backend->told_borders;
  for (const ObservedRank& rank : file.seen().ranks) {
    const auto step = static_cast<size_t>(folder.reach.step);
    if (step >= rank.documents.size()) continue;
    const auto [first, count] = rank.documents[step];
    if (first >= 0 && count > 0 && first + count <= asked.documents.count())
      asked.rows.emplace_back(first, count);
  }
  const auto floor = FloorOf(file.input);
  if (shape->experts.count > 0 && floor.ok())
    asked.rounding = kFloorMultiple * (**floor)[folder.reach.step].reports.log_probs.q99;
  for (int64_t layer = 0; layer < shape->layers; ++layer)
    asked.windows.push_back(shape->WindowOf(layer));
  return CheckMask(file.seen(), asked, ReadRelationsOf(file, asked.documents.tokens()),
                   StepMasksOf(file));
}

bool ShowsMasks(const CaseFile& file) {
  return file.has_finished || (!file.seen().attended.empty() && file.input.reference != nullptr);
}

}  // namespace

extern const Claim kMaskClaim = {
    .name = "mask",
    .rung = Stage::kMask,
    .says = "each token sees its own document up to itself, within the window",
    .witness =
        "who attends to whom, read out of each layer's kernel, in a forward that trains "
        "nothing and in every training step of one micro-batch; log-probs that move when one "
        "token is changed, before training",
    .cannot_see = "a training step of several micro-batches is seen by its numbers only",
    .applies = ShowsMasks,
    .check = CheckMaskOf,
};

}  // namespace bkm
