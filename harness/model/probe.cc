// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/probe.h"

namespace bkm {

Json ToJson(const OptimizerSettings& optimizer) {
  return {{"learning_rate", optimizer.learning_rate},
          {"beta1", optimizer.beta1},
          {"beta2", optimizer.beta2},
          {"epsilon", optimizer.epsilon},
          {"weight_decay", optimizer.weight_decay},
          {"clip_norm", optimizer.clip_norm}};
}

Json NumericsOf(const Probe& probe) {
  return {{"model", probe.model},
          {"seed", probe.seed},
          {"steps", probe.steps},
          {"documents", probe.documents},
          {"optimizer", ToJson(probe.optimizer)}};
}

Json ToJson(const Probe& probe) {
  Json json = NumericsOf(probe);
  json["attention"] = probe.attention;
  json["precision"] = probe.precision;
  json["device"] = probe.device;
  json["ranks"] = probe.ranks;
  json["threads"] = probe.threads;
  Json options = Json::object();
  for (const auto& [name, value] : probe.engine_options)
    options[name] = Json::parse(value, nullptr, false);
  json["engine_options"] = options;
  return json;
}

absl::StatusOr<Probe> ProbeFromJson(const Json& json, const std::string& origin) {
  ObjectReader reader(json, origin);
  Probe probe;
  probe.model = reader.String("model");
  probe.attention = reader.String("attention", "");
  probe.precision = reader.String("precision", probe.precision);
  probe.device = reader.String("device", probe.device);
  probe.ranks = reader.Int("ranks", probe.ranks, 1, 1024);
  probe.threads = reader.Int("threads", probe.threads, 1, 1024);
  probe.steps = reader.Int("steps", probe.steps, 1, 100);
  probe.seed = reader.Int("seed", probe.seed, 0, INT64_MAX);
  if (const Json* documents = reader.Child("documents")) {
    probe.documents.clear();
    if (!documents->is_array() || documents->empty())
      reader.Fail("documents", "a list of token counts is needed here");
    for (const Json& length : *documents) {
      if (!length.is_number_integer() || length.get<int64_t>() < 2) {
        reader.Fail("documents", "a document has at least 2 tokens");
        break;
      }
      probe.documents.push_back(length.get<int64_t>());
    }
  }
  if (const Json* options = reader.Child("engine_options")) {
    if (!options->is_object()) reader.Fail("engine_options", "an object is needed here");
    for (const auto& [name, value] : options->items()) probe.engine_options[name] = value.dump();
  }
  if (const Json* optimizer = reader.Child("optimizer")) {
    ObjectReader inner(*optimizer, origin, reader.PathOf("optimizer"));
    OptimizerSettings& o = probe.optimizer;
    o.learning_rate = inner.Number("learning_rate", o.learning_rate);
    o.beta1 = inner.Number("beta1", o.beta1);
    o.beta2 = inner.Number("beta2", o.beta2);
    o.epsilon = inner.Number("epsilon", o.epsilon);
    o.weight_decay = inner.Number("weight_decay", o.weight_decay);
    o.clip_norm = inner.Number("clip_norm", o.clip_norm);
    reader.Keep(inner.Finish());
  }
  if (absl::Status status = reader.Finish(); !status.ok()) return status;
  return probe;
}

}  // namespace bkm
