// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/attention_story.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/json_facts.h"

namespace bkm {
namespace {

// "FlexAttention x 8": equal names of a list with their counts.
template <typename Say>
std::string Counted(const Json& list, Say say) {
  std::map<std::string, int> counts;
  for (const Json& item : list) ++counts[say(item)];
  constexpr size_t kMostShown = 20;
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) {
    if (parts.size() == kMostShown) {
      parts.push_back(absl::StrCat("and ", counts.size() - kMostShown, " more"));
      break;
    }
    parts.push_back(absl::StrCat(name, " x ", count));
  }
  return absl::StrJoin(parts, ", ");
}

std::string Names(const Json& list) {
  std::vector<std::string> names;
  for (const Json& name : list) {
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return names.empty() ? "nothing" : absl::StrJoin(names, " ");
}

void AppendList(std::string& out, const char* title, const Json& list, const char* key) {
  if (list.empty()) return;
  absl::StrAppend(&out, "  ", title, ": ",
                  Counted(list, [&](const Json& item) { return TextOf(item, key, "?"); }), "\n");
}

void AppendKernels(std::string& out, const Json& backend) {
  const Json& kernels = ListOf(backend, "kernels");
  for (const char* pass : {"forward", "backward"}) {
    if (kernels.empty()) continue;
    const auto names = [&](const Json& layer) { return Names(ListOf(layer, pass)); };
    absl::StrAppend(&out, "  attention dispatched, ", pass, ": ", Counted(kernels, names), "\n");
  }
}

void AppendMasks(std::string& out, const Json& mask) {
  const Json& calls = ListOf(mask, "calls");
  if (calls.empty()) return;
  const auto say = [](const Json& call) {
    const std::string owner = TextOf(call, "owner");
    return absl::StrCat(TextOf(call, "type", "?"), owner.empty() ? "" : " of ", owner);
  };
  absl::StrAppend(&out, "  masks received: ", Counted(calls, say), "\n");
}

// The layers whose attention differs from the requested one.
void AppendDifferences(std::string& out, const MaskFacts& facts) {
  for (const MaskFacts::Layer& layer : facts.layers) {
    absl::StrAppend(&out, "    layer ", layer.layer.value_or(-1), ": ",
                    layer.fault.empty() ? "?" : layer.fault);
    if (!layer.window.empty())
      absl::StrAppend(&out, ", ", layer.window, " (requested: ", layer.asked, ")");
    absl::StrAppend(&out, ", ", layer.extra.value_or(0), " extra pairs, ",
                    layer.missing.value_or(0), " missing\n");
  }
  if (facts.picture.empty()) return;
  absl::StrAppend(&out,
                  "    first of these layers, by documents of queries (rows) and keys (columns): "
                  "\\ causal, # all, . none, + some\n");
  for (size_t row = 0; row < facts.picture.size(); ++row) {
    absl::StrAppend(&out, "      ", row, "  ");
    for (char cell : facts.picture[row]) absl::StrAppend(&out, std::string(1, cell), " ");
    out.back() = '\n';
  }
}

void AppendAttended(std::string& out, const Json& mask, const MaskFacts& facts) {
  if (const std::string error = TextOf(mask, "attended_error"); !error.empty()) {
    absl::StrAppend(&out, "  who attends to whom is unknown: ", error, "\n");
    return;
  }
  const Json& attended = ListOf(mask, "attended");
  if (attended.empty()) return;
  std::map<std::string, int> relations;
  for (const Json& layer : attended) ++relations[TextOf(layer, "relation")];
  absl::StrAppend(&out, "  who attends to whom, measured in ", attended.size(),
                  " layers: ", relations.size(),
                  relations.size() == 1 ? " relation" : " relations");
  if (facts.attended) {
    const int64_t wrong = facts.attended->wrong.value_or(0);
    absl::StrAppend(&out, wrong == 0 ? std::string(", as requested")
                                     : absl::StrCat(", not as requested in ", wrong));
  }
  absl::StrAppend(&out, "\n");
  AppendDifferences(out, facts);
}

}  // namespace

std::string AttentionStory(const Json& observation, const MaskFacts& facts) {
  std::string out;
  const Json& backend = ObjectOf(observation, "backend");
  AppendList(out, "attention built", ListOf(backend, "layers"), "class");
  AppendList(out, "attention called", ListOf(backend, "called"), "callable");
  AppendKernels(out, backend);
  const Json& mask = ObjectOf(observation, "mask");
  AppendMasks(out, mask);
  AppendAttended(out, mask, facts);
  return out;
}

}  // namespace bkm
