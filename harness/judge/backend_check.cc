// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/backend_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/judge/attention_vocabulary.h"

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

std::optional<Fallback> FallbackOf(const ObservedKernels& kernels, const AttentionBackend& asked) {
  const auto forward = BackendsOfOps(kernels.forward);
  if (const AttentionBackend* ran = OtherShown(kernels.forward, forward, asked))
    return Fallback{kernels.layer, false, ran};
  const bool is_composite =
      !asked.composite.empty() &&
      std::any_of(kernels.forward.begin(), kernels.forward.end(),
                  [&](const std::string& op) { return absl::StrContains(op, asked.composite); });
  if (is_composite) return std::nullopt;
  const auto backward = BackendsOfNodes(kernels.backward);
  if (const AttentionBackend* ran = OtherShown(kernels.backward, backward, asked))
    return Fallback{kernels.layer, true, ran};
  return std::nullopt;
}

// "flex was built, but the forward that ran is that of sdpa in 1 of 8 layers (3)"; empty if every
// layer ran the asked backend.
std::string SayFallbacks(const Observation& observation, absl::string_view attention,
                         const AttentionBackend& asked) {
  std::vector<int64_t> layers;
  std::optional<Fallback> first;
  for (const ObservedKernels& kernels : observation.kernels) {
    const std::optional<Fallback> fallback = FallbackOf(kernels, asked);
    if (!fallback) continue;
    if (!first) first = fallback;
    layers.push_back(fallback->layer);
  }
  if (!first) return "";
  const std::string where =
      layers.size() == observation.kernels.size()
          ? std::string("in every layer")
          : absl::StrCat("in ", layers.size(), " of ", observation.kernels.size(), " layers (",
                         absl::StrJoin(layers, ", "), ")");
  return absl::StrCat(attention, " was built, but the ",
                      first->in_backward ? "backward" : "forward", " that ran is that of ",
                      std::string(first->ran->name), " ", where);
}

}  // namespace

CheckResult CheckBackend(const Observation& observation, absl::string_view attention) {
  Json evidence = Evidence(observation, attention);
  const AttentionBackend* asked = AskedBackend(attention);
  if (asked == nullptr) {
    return CheckResult::Unseen(Stage::kBackend,
                               absl::StrCat("no witness knows the attention '", attention,
                                            "' (add it to harness/judge/attention_vocabulary.cc)"),
                               std::move(evidence));
  }
  Shown built, called;
  for (const ObservedLayer& layer : observation.layers)
    Show(layer.layer, layer.class_name, *asked, built);
  for (const std::string& callable : observation.called) Show("called", callable, *asked, called);
  if (built.backend != nullptr) {
    return CheckResult::Failed(Stage::kBackend, reason::kOverrideIgnored,
                               Sentence(attention, "was built", built), std::move(evidence));
  }
  if (called.backend != nullptr) {
    // The configured name tells a replaced option from a fallback at run time.
    const bool replaced = !observation.configured.empty() &&
                          !IsNamedAfter(observation.configured, *asked) &&
                          BackendOfName(observation.configured) != nullptr;
    return CheckResult::Failed(Stage::kBackend,
                               replaced ? reason::kOverrideIgnored : reason::kOtherBackendRan,
                               Sentence(attention, "was called", called), std::move(evidence));
  }
  if (built.asked + called.asked == 0) {
    return CheckResult::Unseen(
        Stage::kBackend,
        absl::StrCat("neither a layer's class nor a callable shows which attention ran (asked for ",
                     attention, ")"),
        std::move(evidence));
  }
  if (std::string fallbacks = SayFallbacks(observation, attention, *asked); !fallbacks.empty()) {
    return CheckResult::Failed(Stage::kBackend, reason::kOtherBackendRan, std::move(fallbacks),
                               std::move(evidence));
  }
  if (const AttentionBackend* other =
          OtherShown(observation.ops, BackendsOfOps(observation.ops), *asked)) {
    return CheckResult::Failed(
        Stage::kBackend, reason::kOtherBackendRan,
        absl::StrCat(attention, " was built, but the ops of the forward pass are those of ",
                     std::string(other->name)),
        std::move(evidence));
  }
  return CheckResult::Passed(Stage::kBackend, std::move(evidence));
}

}  // namespace bkm
