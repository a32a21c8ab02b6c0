// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/probe.h"

#include "harness/base/check.h"

namespace bkm {
namespace {

void CheckDocuments(Fields& fields, const std::vector<int64_t>& lengths) {
  if (lengths.empty()) fields.Fail("documents", "a list of token counts is needed here");
  for (const int64_t length : lengths) {
    if (length < 2) fields.Fail("documents", "a document has at least 2 tokens");
  }
}

// Values are kept as JSON text.
void DescribeOptions(Fields& fields, std::map<std::string, std::string>& options) {
  Json json = Json::object();
  for (const auto& [name, text] : options) json[name] = Json::parse(text, nullptr, false);
  fields.Field("engine_options", json, Presence::kOptional);
  if (!fields.reading()) return;
  if (!json.is_object()) return fields.Fail("engine_options", "an object is needed here");
  for (const auto& [name, value] : json.items()) options[name] = value.dump();
}

}  // namespace

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

void Describe(Fields& fields, Probe& probe) {
  fields.Field("model", probe.model);
  fields.Field("attention", probe.attention, Presence::kOptional);
  fields.Field("precision", probe.precision, Presence::kOptional);
  fields.Field("device", probe.device, Presence::kOptional);
  fields.Int("ranks", probe.ranks, 1, 1024, Presence::kOptional);
  fields.Int("threads", probe.threads, 1, 1024, Presence::kOptional);
  fields.Int("steps", probe.steps, 1, 100, Presence::kOptional);
  fields.Int("seed", probe.seed, 0, INT64_MAX, Presence::kOptional);
  fields.Field("documents", probe.documents, Presence::kOptional);
  if (fields.reading()) CheckDocuments(fields, probe.documents);
  fields.OneOf("head", probe.head, {"lm", "value"}, Presence::kOptional);
  fields.OneOf("input", probe.input, {"packed", "padded"}, Presence::kOptional);
  fields.Int("micro_batches", probe.micro_batches, 1, static_cast<int64_t>(probe.documents.size()),
             Presence::kOptional);
  fields.Field("leftover_checkpoint", probe.leftover_checkpoint, Presence::kOptional);
  DescribeOptions(fields, probe.engine_options);
  fields.Field("optimizer", probe.optimizer, Presence::kOptional);
}

Json ToJson(const Probe& probe) { return Json(WriteFields(probe)); }

absl::StatusOr<Probe> ProbeFromJson(const Json& json, const std::string& origin) {
  return ReadFields<Probe>(json, origin);
}

Json NumericsOf(const Probe& probe) {
  const Json all = ToJson(probe);
  Json json;
  for (const char* key : {"model", "seed", "steps", "documents", "optimizer"}) json[key] = all[key];
  if (probe.head != "lm") json["head"] = probe.head;
  return json;
}

}  // namespace bkm
