// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/backend_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/status_macros.h"
#include "harness/judge/attention_vocabulary.h"
#include "harness/judge/case_file.h"
#include "harness/judge/claims.h"
#include "harness/numerics/model_shapes.h"

namespace bkm {
namespace {

// The backends found in a list of class or callable names.
struct Shown {
  int64_t asked = 0;                          // names that show the asked backend
  std::vector<std::string> other;             // "layers.3...: sdpa"
  const AttentionBackend* backend = nullptr;  // one of the others
};

void Show(absl::string_view where, absl::string_view name, const AttentionBackend& asked,
          Shown& shown) {
  if (IsNamedAfter(name, asked)) {
    ++shown.asked;
  } else if (const AttentionBackend* other = BackendOfName(name)) {
    shown.backend = other;
    shown.other.push_back(absl::StrCat(where, ": ", name));
  }
}

std::string Sentence(absl::string_view attention, absl::string_view verb, const Shown& shown) {
  const std::string layers =
      shown.asked == 0
          ? std::string("in every layer")
          : absl::StrCat("in ", shown.other.size(), " of ",
                         shown.asked + static_cast<int64_t>(shown.other.size()), " layers");
  return absl::StrCat("asked for ", attention, ", but ", std::string(shown.backend->name), " ",
                      verb, " ", layers, " (", shown.other.front(), ")");
}

// One entry per distinct set of kernels, with the number of layers that share it.
Json KernelEvidence(const Observation& observation) {
  std::map<std::pair<std::vector<std::string>, std::vector<std::string>>, int64_t> counts;
  for (const ObservedKernels& kernels : observation.kernels)
    ++counts[{kernels.forward, kernels.backward}];
  Json list = Json::array();
  for (const auto& [kernels, layers] : counts)
    list.push_back({{"layers", layers}, {"forward", kernels.first}, {"backward", kernels.second}});
  return list;
}

Json Evidence(const Observation& observation, absl::string_view attention) {
  std::map<std::string, int64_t> classes, callables;
  for (const ObservedLayer& layer : observation.layers) ++classes[layer.class_name];
  for (const std::string& callable : observation.called) ++callables[callable];
  Json evidence = {{"asked", std::string(attention)}, {"ops", observation.ops}};
  if (!classes.empty()) evidence["built"] = classes;
  if (!callables.empty()) evidence["called"] = callables;
  if (!observation.configured.empty()) evidence["configured"] = observation.configured;
  if (!observation.kernels.empty()) evidence["kernels"] = KernelEvidence(observation);
  return evidence;
}

// One layer whose kernels belong to another backend.
struct Fallback {
  int64_t layer;
  bool in_backward;
  const AttentionBackend* ran;
};

bool IsComposite(const ObservedKernels& kernels, const AttentionBackend& asked) {
  return !asked.composite.empty() &&
         std::any_of(kernels.forward.begin(), kernels.forward.end(),
                     [&](const std::string& op) { return absl::StrContains(op, asked.composite); });
}

std::optional<Fallback> FallbackOf(const ObservedKernels& kernels, const AttentionBackend& asked) {
  if (const AttentionBackend* ran = BackendOfOps(kernels.forward, asked).other)
    return Fallback{kernels.layer, false, ran};
  if (IsComposite(kernels, asked)) return std::nullopt;
  if (const AttentionBackend* ran = BackendOfNodes(kernels.backward, asked).other)
    return Fallback{kernels.layer, true, ran};
  return std::nullopt;
}

// "flex was built, but the forward that ran is that of sdpa in 1 of 8 layers (3)"; empty if every
// layer ran the asked backend.
std::string SayFallbacks(const Observation& observation, absl::string_view attention,
                         const AttentionBackend& asked) {
  std::set<int64_t> layers, all;
  std::optional<Fallback> first;
  for (const ObservedKernels& kernels : observation.kernels) {
    all.insert(kernels.layer);
    const std::optional<Fallback> fallback = FallbackOf(kernels, asked);
    if (!fallback) continue;
    if (!first) first = fallback;
    layers.insert(fallback->layer);
  }
  if (!first) return "";
  const std::string where = layers.size() == all.size()
                                ? std::string("in every layer")
                                : absl::StrCat("in ", layers.size(), " of ", all.size(),
                                               " layers (", absl::StrJoin(layers, ", "), ")");
  return absl::StrCat(attention, " was built, but the ",
                      first->in_backward ? "backward" : "forward", " that ran is that of ",
                      std::string(first->ran->name), " ", where);
}

bool HasCall(const ObservedKernels& kernels, size_t step) {
  return step < kernels.calls.size() && kernels.calls[step] > 0;
}

// What torch's autograd calls the one node of a compiled function. Its backward was derived from
// the graph that its forward runs, so the forward's ops and kernels tell what it is.
constexpr absl::string_view kCompiledNode = "CompiledFunctionBackward";

bool IsCompiled(const ObservedKernels& kernels) {
  return std::find(kernels.backward.begin(), kernels.backward.end(), kCompiledNode) !=
         kernels.backward.end();
}

// Whether a layer's call is the asked backend's, forward and backward.
bool IsProven(const ObservedKernels& kernels, const AttentionBackend& asked) {
  return BackendOfOps(kernels.forward, asked).is_asked &&
         (IsComposite(kernels, asked) || IsCompiled(kernels) ||
          BackendOfNodes(kernels.backward, asked).is_asked);
}

struct LayersOfStep {
  std::vector<int64_t> idle;      // had no call
  std::vector<int64_t> unproven;  // had none that is the asked backend's
};

LayersOfStep LayersOf(const Observation& observation, const AttentionBackend& backend,
                      int64_t layers, size_t step) {
  std::set<int64_t> called, proven;
  for (const ObservedKernels& kernels : observation.kernels) {
    if (!HasCall(kernels, step)) continue;
    called.insert(kernels.layer);
    if (IsProven(kernels, backend)) proven.insert(kernels.layer);
  }
  LayersOfStep result;
  for (int64_t layer = 0; layer < layers; ++layer) {
    if (!called.contains(layer)) result.idle.push_back(layer);
    if (!proven.contains(layer)) result.unproven.push_back(layer);
  }
  return result;
}

std::string SayLayers(const std::vector<int64_t>& some, int64_t all) {
  return absl::StrCat("in ", some.size(), " of ", all, " layers (", absl::StrJoin(some, ", "), ")");
}

// Whether the nodes of a backward pass tell the calls of this backend in this step.
bool IsCountable(const Observation& observation, const AttentionBackend& backend, size_t step) {
  return !backend.nodes.empty() &&
         std::none_of(observation.kernels.begin(), observation.kernels.end(),
                      [&](const ObservedKernels& kernels) {
                        return HasCall(kernels, step) && IsComposite(kernels, backend);
                      });
}

// How many calls of the attention the loss of a step depends on. Compiled calls count where each
// compiled call of the step is the asked backend's.
int64_t CallsBehindLoss(const Observation& observation, size_t step,
                        const AttentionBackend& backend) {
  const bool are_asked = std::all_of(observation.kernels.begin(), observation.kernels.end(),
                                     [&](const ObservedKernels& kernels) {
                                       return !HasCall(kernels, step) || !IsCompiled(kernels) ||
                                              BackendOfOps(kernels.forward, backend).is_asked;
                                     });
  int64_t calls = 0;
  for (const auto& [node, count] : observation.steps[step].attention_nodes) {
    if (IsNodeOf(node, backend) || (are_asked && node == kCompiledNode)) calls += count;
  }
  return calls;
}

const AttentionBackend* OtherBehindLoss(const ObservedStep& step, const AttentionBackend& asked) {
  std::vector<std::string> nodes;
  for (const auto& [node, count] : step.attention_nodes) nodes.push_back(node);
  // Plain softmax and bmm occur outside of attention, too: in losses and routers.
  const AttentionBackend* other = BackendOfNodes(nodes, asked).other;
  return other != nullptr && !other->nodes.empty() ? other : nullptr;
}

// What a finished cell's training steps show; nullopt if every layer of every step is proven.
std::optional<CheckResult> CheckSteps(const Observation& observation, const AskedAttention& asked,
                                      const AttentionBackend& backend) {
  const auto failed = [&](const std::string& what) {
    return CheckResult::Failed(Stage::kBackend, reason::kOtherBackendRan,
                               absl::StrCat(asked.name, " was built, but ", what));
  };
  std::optional<CheckResult> unseen;
  const auto keep_unseen = [&](std::string message) {
    if (!unseen) unseen = CheckResult::Unseen(Stage::kBackend, std::move(message));
  };
  for (size_t step = 0; step < static_cast<size_t>(asked.steps); ++step) {
    if (step >= observation.steps.size() || observation.steps[step].attention_nodes.empty()) {
      keep_unseen(absl::StrCat("nobody saw what the loss of step ", step + 1, " depends on"));
      continue;
    }
    const ObservedStep& observed = observation.steps[step];
    const std::string loss = absl::StrCat("the loss of step ", step + 1, " depends on ");
    if (const AttentionBackend* other = OtherBehindLoss(observed, backend))
      return failed(absl::StrCat(loss, std::string(other->name), ", too"));
    const int64_t needed = asked.layers * std::max<int64_t>(1, observed.forwards.value_or(1));
    const int64_t calls = CallsBehindLoss(observation, step, backend);
    if (IsCountable(observation, backend, step) && calls < needed) {
      return failed(absl::StrCat(loss, "only ", calls, " of the ", needed,
                                 " calls that its layers and micro-batches need"));
    }
    const LayersOfStep layers = LayersOf(observation, backend, asked.layers, step);
    const bool saw_some = static_cast<int64_t>(layers.idle.size()) < asked.layers;
    if (!layers.idle.empty() && saw_some) {
      return failed(absl::StrCat("it did not run in step ", step + 1, " ",
                                 SayLayers(layers.idle, asked.layers)));
    }
    if (!layers.unproven.empty()) {
      keep_unseen(absl::StrCat("no witness saw ", asked.name, " run in step ", step + 1, " ",
                               SayLayers(layers.unproven, asked.layers)));
    }
  }
  return unseen;
}

}  // namespace

CheckResult CheckBackend(const Observation& observation, const AskedAttention& attention) {
  Json evidence = Evidence(observation, attention.name);
  const AttentionBackend* asked = AskedBackend(attention.name);
  if (asked == nullptr) {
    return CheckResult::Unseen(Stage::kBackend,
                               absl::StrCat("no witness knows the attention '", attention.name,
                                            "' (add it to harness/judge/attention_vocabulary.cc)"),
                               std::move(evidence));
  }
  Shown built, called;
  for (const ObservedLayer& layer : observation.layers)
    Show(layer.layer, layer.class_name, *asked, built);
  for (const std::string& callable : observation.called) Show("called", callable, *asked, called);
  for (const Shown& shown : {built, called}) {
    if (shown.backend == nullptr || !attention.of_control || observation.not_asked.empty())
      continue;
    return CheckResult::NotOffered(
        Stage::kBackend,
        absl::StrCat(observation.not_asked, ": ", attention.name,
                     " cannot be asked for, and it has ", std::string(shown.backend->name)),
        std::move(evidence));
  }
  if (built.backend != nullptr) {
    return CheckResult::Failed(Stage::kBackend, reason::kOverrideIgnored,
                               Sentence(attention.name, "was built", built), std::move(evidence));
  }
  if (called.backend != nullptr) {
    // The configured name tells a replaced option from a fallback at run time.
    const bool replaced = !observation.configured.empty() &&
                          !IsNamedAfter(observation.configured, *asked) &&
                          BackendOfName(observation.configured) != nullptr;
    return CheckResult::Failed(Stage::kBackend,
                               replaced ? reason::kOverrideIgnored : reason::kOtherBackendRan,
                               Sentence(attention.name, "was called", called), std::move(evidence));
  }
  if (built.asked + called.asked <
      std::max<int64_t>(1, attention.steps > 0 ? attention.layers : 1)) {
    return CheckResult::Unseen(
        Stage::kBackend,
        absl::StrCat("neither a layer's class nor a callable shows which attention ran (asked for ",
                     attention.name, ", shown by ", built.asked + called.asked, " of ",
                     attention.layers, " layers)"),
        std::move(evidence));
  }
  if (std::string fallbacks = SayFallbacks(observation, attention.name, *asked);
      !fallbacks.empty()) {
    return CheckResult::Failed(Stage::kBackend, reason::kOtherBackendRan, std::move(fallbacks),
                               std::move(evidence));
  }
  if (const AttentionBackend* other = BackendOfOps(observation.ops, *asked).other) {
    return CheckResult::Failed(
        Stage::kBackend, reason::kOtherBackendRan,
        absl::StrCat(attention.name, " was built, but the forward pass has ops of ",
                     std::string(other->name)),
        std::move(evidence));
  }
  if (std::optional<CheckResult> steps = CheckSteps(observation, attention, *asked)) {
    steps->facts = std::move(evidence);
    return *std::move(steps);
  }
  return CheckResult::Passed(Stage::kBackend, std::move(evidence));
}

absl::StatusOr<AskedAttention> AskedOf(const CaseFile& file) {
  ASSIGN_OR_RETURN(const ModelShape shape, ShapeOf(file.probe()));
  return AskedAttention{.name = file.probe().attention,
                        .layers = shape.layers,
                        .steps = file.has_finished ? file.probe().steps : 0,
                        .of_control = file.input.packages.engine.empty()};
}

namespace {

CheckResult CheckBackendOf(const CaseFile& file) {
  const absl::StatusOr<AskedAttention> asked = AskedOf(file);
  if (!asked.ok()) return CheckResult::Unreadable(Stage::kBackend, asked.status());
  return CheckBackend(file.seen(), *asked);
}

bool ShowsLayers(const CaseFile& file) {
  return file.has_finished || !file.seen().layers.empty() || !file.seen().called.empty();
}

}  // namespace

extern const Claim kBackendClaim = {
    .name = "backend",
    .rung = Stage::kBackend,
    .says = "every layer computes with the asked attention",
    .witness =
        "the modules that were built, at construction; the ops that each layer dispatches "
        "and the autograd nodes behind its output, in each call of each training step; the "
        "nodes that the loss depends on, in each step",
    .cannot_see = "a kernel that computes something else under its own name",
    .applies = ShowsLayers,
    .check = CheckBackendOf,
};

}  // namespace bkm
