// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/probe.h"

#include "harness/base/check.h"

namespace bkm {

const std::vector<std::string>& WarmupSchedules() {
  static const auto& names = *new std::vector<std::string>{"zero-based", "one-based"};
  return names;
}

double LearningRateAt(const OptimizerSettings& settings, int step) {
  if (step >= settings.warmup_steps) return settings.learning_rate;
  HARNESS_CHECK(!settings.schedule.empty()) << "a warm-up without a schedule";
  const int counted = settings.schedule == "one-based" ? step + 1 : step;
  return settings.learning_rate * counted / settings.warmup_steps;
}

void Describe(Fields& fields, OptimizerSettings& settings) {
  fields.Field("learning_rate", settings.learning_rate, Presence::kOptional);
  fields.Field("beta1", settings.beta1, Presence::kOptional);
  fields.Field("beta2", settings.beta2, Presence::kOptional);
  fields.Field("epsilon", settings.epsilon, Presence::kOptional);
  fields.Field("weight_decay", settings.weight_decay, Presence::kOptional);
  fields.Field("clip_norm", settings.clip_norm, Presence::kOptional);
  fields.Int("warmup_steps", settings.warmup_steps, 0, 100, Presence::kOmitted);
  fields.OneOf("schedule", settings.schedule, WarmupSchedules(), Presence::kOmitted);
  if (!fields.reading()) return;
  if (settings.warmup_steps > 0 && settings.schedule.empty())
    fields.Fail("schedule", "missing: zero-based (HF) or one-based (torchtitan)");
  if (settings.warmup_steps == 0 && !settings.schedule.empty())
    fields.Fail("schedule", "set it only together with warmup_steps");
}

Json ToJson(const OptimizerSettings& optimizer) { return Json(WriteFields(optimizer)); }

Json NumericsOf(const Probe& probe) {
  Json json = {{"model", probe.model},
               {"seed", probe.seed},
               {"steps", probe.steps},
               {"documents", probe.documents},
               {"optimizer", ToJson(probe.optimizer)}};
  if (probe.head != "lm") json["head"] = probe.head;
  return json;
}

Json ToJson(const Probe& probe) {
  Json json = NumericsOf(probe);
  json["attention"] = probe.attention;
  json["precision"] = probe.precision;
  json["device"] = probe.device;
  json["ranks"] = probe.ranks;
  json["threads"] = probe.threads;
  json["head"] = probe.head;
  json["input"] = probe.input;
  json["micro_batches"] = probe.micro_batches;
  json["leftover_checkpoint"] = probe.leftover_checkpoint;
  Json options = Json::object();
  for (const auto& [name, value] : probe.engine_options)
    options[name] = Json::parse(value, nullptr, false);
  json["engine_options"] = options;
  return json;
}

namespace {

void ReadDocuments(ObjectReader& reader, std::vector<int64_t>& lengths) {
  const Json* documents = reader.Child("documents");
  if (!documents) return;
  lengths.clear();
  if (!documents->is_array() || documents->empty())
    return reader.Fail("documents", "a list of token counts is needed here");
  for (const Json& length : *documents) {
    if (!length.is_number_integer() || length.get<int64_t>() < 2)
      return reader.Fail("documents", "a document has at least 2 tokens");
    lengths.push_back(length.get<int64_t>());
  }
}

void ReadOptimizer(ObjectReader& outer, OptimizerSettings& settings) {
  const Json* optimizer = outer.Child("optimizer");
  if (!optimizer) return;
  Fields fields(*optimizer, outer.origin(), outer.PathOf("optimizer"), FieldStyle::kStrict);
  Describe(fields, settings);
  outer.Keep(fields.Finish());
}

}  // namespace

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
  ReadDocuments(reader, probe.documents);
  if (reader.Has("head")) probe.head = reader.OneOf("head", {"lm", "value"});
  if (reader.Has("input")) probe.input = reader.OneOf("input", {"packed", "padded"});
  probe.micro_batches = reader.Int("micro_batches", probe.micro_batches, 1,
                                   static_cast<int64_t>(probe.documents.size()));
  probe.leftover_checkpoint = reader.Bool("leftover_checkpoint", probe.leftover_checkpoint);
  if (const Json* options = reader.Child("engine_options")) {
    if (!options->is_object()) reader.Fail("engine_options", "an object is needed here");
    for (const auto& [name, value] : options->items()) probe.engine_options[name] = value.dump();
  }
  ReadOptimizer(reader, probe.optimizer);
  if (absl::Status status = reader.Finish(); !status.ok()) return status;
  return probe;
}

}  // namespace bkm
