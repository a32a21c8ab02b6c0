// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/backend_check.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/judge/attention_vocabulary.h"

namespace bkm {
namespace {

// What a list of names shows.
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

Json Evidence(const Observation& observation, absl::string_view attention) {
  std::map<std::string, int64_t> classes, callables;
  for (const ObservedLayer& layer : observation.layers) ++classes[layer.class_name];
  for (const std::string& callable : observation.called) ++callables[callable];
  Json evidence = {{"asked", std::string(attention)}, {"ops", observation.ops}};
  if (!classes.empty()) evidence["built"] = classes;
  if (!callables.empty()) evidence["called"] = callables;
  if (!observation.configured.empty()) evidence["configured"] = observation.configured;
  return evidence;
}

// A witness of ops that leave no room for the asked backend; nullptr: they do, or nothing is known.
const AttentionBackend* OtherOps(const Observation& observation, const AttentionBackend& asked) {
  const std::vector<const AttentionBackend*> ran = BackendsOfOps(observation.ops);
  if (ran.empty() || std::find(ran.begin(), ran.end(), &asked) != ran.end()) return nullptr;
  // Eager attention, and backends whose kernels are no torch ops, cannot be seen beside another
  // one: that the others ran does not say that they did not.
  const bool is_visible = asked.name == "flex" || asked.name == "varlen" || asked.name == "sdpa";
  return is_visible ? ran.front() : nullptr;
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
    // The configuration tells a replaced option from a fallback while running.
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
  if (const AttentionBackend* other = OtherOps(observation, *asked)) {
    return CheckResult::Failed(
        Stage::kBackend, reason::kOtherBackendRan,
        absl::StrCat(attention, " was built, but the ops of the forward pass are those of ",
                     std::string(other->name)),
        std::move(evidence));
  }
  return CheckResult::Passed(Stage::kBackend, std::move(evidence));
}

}  // namespace bkm
