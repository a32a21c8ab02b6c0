// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// An observation with every field that a worker reports, and what a subject could put in place of
// each of them. For tests only.
#ifndef HARNESS_JUDGE_TESTING_OBSERVATION_H_
#define HARNESS_JUDGE_TESTING_OBSERVATION_H_

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/base/check.h"
#include "harness/base/json.h"
#include "harness/judge/reference_data.h"
#include "harness/judge/testing_steps.h"
#include "harness/numerics/safetensors.h"

namespace bkm {

// The right cell of testing_steps.h, as its worker reports it.
inline Json CompleteObservation() {
  Json json = *ParseJson(R"({
    "schema": 1, "ending": {"kind": "completed"}, "measured": "2026-11-20T10:00:00Z",
    "stages": [{"stage": "import", "seconds": 0.3, "rss_mib": 900},
               {"stage": "forward", "seconds": 1.5, "rss_mib": 950},
               {"stage": "golden", "seconds": 0.1, "rss_mib": 950}],
    "shims": {"cpu-device": 3}, "sandbox": ["mount", "network"], "plant": [],
    "versions": {"torch": "2.13.0+cpu", "transformers": "5.10.2"},
    "adapter": {"engine_class": "E", "precision_ran": "bf16", "asked": {"a": 1}},
    "backend": {"called": [{"layer": 0, "callable": "flex_attention_forward"}],
                "configured": "flex", "ops": ["flex_attention"]},
    "load": {"a": {"norm": 1.0, "sum": 2.0, "numel": 2}, "b": {"norm": 4.0, "sum": 5.0, "numel": 1}},
    "mask": {"calls": [{"layer": "l", "type": "BlockMask", "digest": "0123456789abcdef", "step": 0,
                        "owner": "caller", "pairs": 9}],
             "reach": {"position": 1, "moved": [0, 1, 2], "largest": [1.0, 1.0, 1.0]},
             "reaches": [{"position": 3, "moved": [2, 3, 4], "largest": [1.0, 1.0, 1.0]}],
             "attended": []},
    "closure": {"engine": ["verl/__init__.py"], "library": ["t/a.py"],
                "lookups": {"engine": ["verl/workers"], "library": []},
                "asked": {"engine": [], "library": []}, "escapes": [], "whole": true},
    "model": {"norms": [{"name": "norm", "epsilon": 1e-6}], "rope_theta": 1e6},
    "forward_only": {"tensors": "tensors/forward_only.safetensors", "log_probs_dtype": "float32"},
    "warnings": ["UserWarning: x"], "seconds": {"import": 0.2}, "timeouts": 0, "ignored_events": 0,
    "usage": {"wall_s": 2.5, "user_s": 2.0, "system_s": 0.2, "max_rss_mib": 950}})",
                         "testing_observation.h");
  const RightCell cell = MakeRightCell();
  for (int layer = 0; layer < 8; ++layer) {
    json["backend"]["layers"].push_back({{"layer", "layers." + std::to_string(layer)},
                                         {"class", "FlexAttention"},
                                         {"module", "m"}});
    json["backend"]["kernels"].push_back({{"layer", layer},
                                          {"forward", {"flex_attention"}},
                                          {"backward", {"FlexAttentionAutogradOpBackward"}},
                                          {"calls", {1, 1}},
                                          {"precision", "bf16"}});
    json["mask"]["attended"].push_back({{"layer", layer}, {"relation", "right"}});
  }
  json["backend"]["gpu_reads"] = std::vector<int64_t>(cell.reported.size(), 8);
  for (size_t k = 0; k < cell.reported.size(); ++k) {
    const ObservedStep& step = cell.reported[k];
    const ObservedParamGroup& group = step.param_groups[0];
    json["steps"].push_back({{"step", k},
                             {"loss", *step.loss},
                             {"grad_norm", *step.grad_norm},
                             {"learning_rate", *step.learning_rate},
                             {"next_learning_rate", *step.learning_rate},
                             {"forwards", 1},
                             {"attention_nodes", step.attention_nodes},
                             {"products", step.products},
                             {"attended", json["mask"]["attended"]},
                             {"log_probs_dtype", "float32"},
                             {"seconds", 0.5},
                             {"optimizer",
                              {{"class", "AdamW"},
                               {"param_groups",
                                {{{"lr", group.learning_rate},
                                  {"betas", {group.beta1, group.beta2}},
                                  {"eps", group.epsilon},
                                  {"weight_decay", group.weight_decay}}}}}},
                             {"tensors", "tensors/step" + std::to_string(k) + ".safetensors"}});
  }
  return json;
}

// The same cell, stopped by an exception with a cause.
inline Json RaisedObservation() {
  Json json = CompleteObservation();
  json["ending"] = {{"kind", "raised"}};
  const auto frame = [](const char* owner, const char* file, const char* statement) {
    return Json{{"file", file},   {"line", 3},      {"function", "f"},
                {"owner", owner}, {"text", "g(x)"}, {"statement", statement}};
  };
  json["exception"] = {{"type", "ImportError"},
                       {"module", "builtins"},
                       {"message", "cannot import name 'x' from 'y'"},
                       {"name", "y.x"},
                       {"object", "y.Y"},
                       {"frames", {frame("engine", "verl/a.py", "call")}},
                       {"cause",
                        {{"type", "KeyError"},
                         {"message", "'x'"},
                         {"frames", {frame("library", "t/b.py", "raise")}}}}};
  return json;
}

inline NamedTensor Floats(const std::string& name, const std::vector<double>& values) {
  return NamedTensor::F32(name, {static_cast<int64_t>(values.size())},
                          std::vector<float>(values.begin(), values.end()));
}

// The relation of its two documents: causal in each of them.
inline NamedTensor RightRelationTensor(const std::string& name) {
  std::string right(25, '\0');
  for (const int pair : {0, 5, 6, 10, 11, 12, 18, 23, 24}) right[pair] = 1;
  return {name, TensorType::kU8, {5, 5}, right};
}

// Writes what `cell` leaves of its step `k`.
inline void WriteStepTensors(const RightCell& cell, size_t k, const std::filesystem::path& file) {
  std::vector<NamedTensor> tensors = {Floats("log_probs", cell.tensors[k].log_probs),
                                      RightRelationTensor("relation/right")};
  for (const auto& [name, sampled] : cell.tensors[k].tensors) {
    tensors.push_back(Floats("grad/" + name, sampled.gradient));
    tensors.push_back(Floats("before/" + name, sampled.before));
    tensors.push_back(Floats("after/" + name, sampled.after));
    tensors.push_back(NamedTensor::F64("norms/" + name, {3}, sampled.norms));
  }
  HARNESS_CHECK(WriteSafetensors(file, tensors).ok());
}

// Writes what `cell` leaves of the forwards that train nothing.
inline void WriteForwards(const RightCell& cell, const std::filesystem::path& dir) {
  HARNESS_CHECK(
      WriteSafetensors(dir / "tensors" / "attended.safetensors", {RightRelationTensor("right")})
          .ok());
  HARNESS_CHECK(WriteSafetensors(dir / "tensors" / "forward_only.safetensors",
                                 {Floats("log_probs", cell.forward_only.log_probs)})
                    .ok());
}

// Writes the files that CompleteObservation() names.
inline void WriteTensorsOfCell(const std::filesystem::path& dir) {
  const RightCell cell = MakeRightCell();
  for (size_t k = 0; k < cell.tensors.size(); ++k)
    WriteStepTensors(cell, k, dir / "tensors" / ("step" + std::to_string(k) + ".safetensors"));
  WriteForwards(cell, dir);
}

// What the right cell is judged by.
inline ReferenceData ReferenceOfCell() {
  const RightCell cell = MakeRightCell();
  ReferenceData reference = {
      ProbeFolder(),
      std::map<std::string, ObservedTensor>{{"a", {1, 2, 2}}, {"b", {4, 5, 1}}},
      cell.golden,
      {}};
  reference.folder->reach = {.step = 0, .document = 0, .position = 1, .token = 9};
  reference.folder->steps = cell.batches;
  reference.floors.emplace("bf16", cell.floor);
  return reference;
}

// One value of every type and of every kind that a reader could take for harmless.
inline const std::vector<Json>& HostileValues() {
  static const auto& values = *new std::vector<Json>([] {
    std::vector<Json> all = {nullptr,
                             true,
                             0,
                             -1,
                             1e308,
                             -0.5,
                             INT64_MIN,
                             INT64_MAX,
                             uint64_t{18446744073709551615u},
                             "",
                             "x",
                             "../../etc/passwd",
                             "/etc/passwd",
                             std::string("a\0b", 3),
                             "\x1b[2J\u202e\u2028|`<b>\n",
                             "\xff\xfe",
                             std::string(20000, 'A'),
                             Json::array(),
                             Json::array({1}),
                             Json::array({nullptr}),
                             Json::array({Json::object()}),
                             Json::array({"x", 1, nullptr}),
                             Json::object(),
                             {{"", nullptr}},
                             {{"x", {{"y", 1}}}}};
    Json deep = 1;
    for (int i = 0; i < 50; ++i) deep = i % 2 ? Json{{"cause", deep}} : Json::array({deep});
    all.push_back(deep);
    return all;
  }());
  return values;
}

// Calls `visit` with `json` once for each value at or below `root`, at every depth, and each
// hostile value in its place; and once with each value left out. `what` names the place and the
// value. Of a list that is longer than two, only the first and the last value are visited.
inline void ForEachMutation(const Json& json,
                            const std::function<void(const Json&, const std::string& what)>& visit,
                            const std::string& root = "") {
  std::vector<Json::json_pointer> places;
  const std::function<void(const Json&, const Json::json_pointer&)> walk =
      [&](const Json& value, const Json::json_pointer& place) {
        places.push_back(place);
        if (value.is_object()) {
          for (const auto& [key, child] : value.items()) walk(child, place / key);
        } else if (value.is_array()) {
          for (size_t i = 0; i < value.size(); i += std::max<size_t>(1, value.size() - 1))
            walk(value[i], place / i);
        }
      };
  walk(json[Json::json_pointer(root)], Json::json_pointer(root));
  for (const Json::json_pointer& place : places) {
    for (const Json& hostile : HostileValues()) {
      Json mutated = json;
      mutated[place] = hostile;
      visit(mutated, place.to_string() + " = " + ToLine(hostile).substr(0, 60));
    }
    if (place.empty()) continue;
    Json mutated = json;
    Json& parent = mutated[place.parent_pointer()];
    parent.is_array() ? parent.erase(std::stoul(place.back())) : void(parent.erase(place.back()));
    visit(mutated, place.to_string() + " left out");
  }
}

}  // namespace bkm

#endif  // HARNESS_JUDGE_TESTING_OBSERVATION_H_
