// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/report/attention_story.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bkm {
namespace {

Json Child(const Json& json, const char* key, Json otherwise) {
  if (!json.is_object() || !json.contains(key) || json[key].type() != otherwise.type())
    return otherwise;
  return json[key];
}

// "FlexAttention x 8": equal names of a list with their counts.
template <typename Say>
std::string Counted(const Json& list, Say say) {
  std::map<std::string, int> counts;
  for (const Json& item : list) ++counts[say(item)];
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) parts.push_back(absl::StrCat(name, " x ", count));
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
                  Counted(list, [&](const Json& item) { return item.value(key, "?"); }), "\n");
}

void AppendKernels(std::string& out, const Json& backend) {
  const Json kernels = Child(backend, "kernels", Json::array());
  for (const char* pass : {"forward", "backward"}) {
    if (kernels.empty()) continue;
    const auto names = [&](const Json& layer) { return Names(Child(layer, pass, Json::array())); };
    absl::StrAppend(&out, "  attention dispatched, ", pass, ": ", Counted(kernels, names), "\n");
  }
}

void AppendMasks(std::string& out, const Json& mask) {
  const Json calls = Child(mask, "calls", Json::array());
  if (calls.empty()) return;
  const auto say = [](const Json& call) {
    const std::string owner = call.value("owner", "");
    return absl::StrCat(call.value("type", "?"), owner.empty() ? "" : " of ", owner);
  };
  absl::StrAppend(&out, "  masks received: ", Counted(calls, say), "\n");
}

// The layers whose attention differs from the requested one.
void AppendDifferences(std::string& out, const Json& check) {
  for (const Json& layer : Child(check, "layers", Json::array())) {
    absl::StrAppend(&out, "    layer ", layer.value("layer", -1), ": ", layer.value("fault", "?"));
    if (layer.contains("window"))
      absl::StrAppend(&out, ", ", layer.value("window", ""),
                      " (requested: ", layer.value("asked", ""), ")");
    absl::StrAppend(&out, ", ", layer.value("extra", 0), " extra pairs, ",
                    layer.value("missing", 0), " missing\n");
  }
  const Json picture = Child(check, "picture", Json::array());
  if (picture.empty()) return;
  absl::StrAppend(&out,
                  "    first of these layers, by documents of queries (rows) and keys (columns): "
                  "\\ causal, # all, . none, + some\n");
  for (size_t row = 0; row < picture.size(); ++row) {
    absl::StrAppend(&out, "      ", row, "  ");
    for (char cell : picture[row].get<std::string>())
      absl::StrAppend(&out, std::string(1, cell), " ");
    out.back() = '\n';
  }
}

void AppendAttended(std::string& out, const Json& mask, const Json& check) {
  if (mask.contains("attended_error")) {
    absl::StrAppend(&out, "  who attends to whom is unknown: ", mask.value("attended_error", ""),
                    "\n");
    return;
  }
  const Json attended = Child(mask, "attended", Json::array());
  if (attended.empty()) return;
  std::map<std::string, int> relations;
  for (const Json& layer : attended) ++relations[layer.value("relation", "")];
  const Json counts = Child(check, "attended", Json::object());
  absl::StrAppend(&out, "  who attends to whom, measured in ", attended.size(),
                  " layers: ", relations.size(),
                  relations.size() == 1 ? " relation" : " relations");
  if (!counts.empty()) {
    const int wrong = counts.value("wrong", 0);
    absl::StrAppend(&out, wrong == 0 ? std::string(", as requested")
                                     : absl::StrCat(", not as requested in ", wrong));
  }
  absl::StrAppend(&out, "\n");
  AppendDifferences(out, check);
}

}  // namespace

std::string AttentionStory(const Json& observation, const Json& mask_check) {
  std::string out;
  const Json backend = Child(observation, "backend", Json::object());
  AppendList(out, "attention built", Child(backend, "layers", Json::array()), "class");
  AppendList(out, "attention called", Child(backend, "called", Json::array()), "callable");
  AppendKernels(out, backend);
  const Json mask = Child(observation, "mask", Json::object());
  AppendMasks(out, mask);
  AppendAttended(out, mask, mask_check);
  return out;
}

}  // namespace bkm
