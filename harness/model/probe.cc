// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/probe.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/check.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/json_facts.h"
#include "harness/model/dealing.h"
#include "harness/model/dimension.h"
#include "harness/model/input_form.h"

namespace bkm {
namespace {

// False if the JSON is not a list of lists of whole numbers.
bool ReadLists(const Json& json, std::vector<std::vector<int64_t>>& lists) {
  if (!json.is_array()) return false;
  for (const Json& list : json) {
    if (!list.is_array()) return false;
    lists.emplace_back();
    for (const Json& number : list) {
      if (!number.is_number_integer()) return false;
      lists.back().push_back(number.get<int64_t>());
    }
  }
  return true;
}

// One layout is written as a list of token counts, more as a list of such lists.
void DescribeDocuments(Fields& fields, std::vector<std::vector<int64_t>>& documents) {
  Json json = documents.size() == 1 ? Json(documents.front()) : Json(documents);
  fields.Field("documents", json, Presence::kOptional);
  if (!fields.reading()) return;
  constexpr char kWanted[] = "a list of token counts, or a list of such lists, is needed here";
  if (json.is_array() && !json.empty() && !json.front().is_array()) json = Json::array({json});
  if (!json.is_array() || json.empty()) return fields.Fail("documents", kWanted);
  documents.clear();
  if (!ReadLists(json, documents)) return fields.Fail("documents", kWanted);
  for (const std::vector<int64_t>& lengths : documents) {
    if (lengths.empty()) return fields.Fail("documents", kWanted);
    if (*std::min_element(lengths.begin(), lengths.end()) < 1)
      fields.Fail("documents", "a document has at least 1 token");
    if (*std::max_element(lengths.begin(), lengths.end()) < 2)
      fields.Fail("documents", "one document of each step has at least 2 tokens");
  }
}

// A step is not cut into more parts than it has documents.
int64_t FewestDocuments(const Probe& probe) {
  size_t fewest = probe.documents.front().size();
  if (IsDealtByTrainer(probe)) fewest = std::min<size_t>(fewest, probe.global_batch_size);
  if (probe.drive == "trainer") return static_cast<int64_t>(fewest);  // it reads no other layout
  for (const std::vector<int64_t>& layout : probe.documents)
    fewest = std::min(fewest, layout.size());
  return static_cast<int64_t>(fewest);
}

// Values are kept as JSON text.
void DescribeValues(Fields& fields, const char* key, Presence presence,
                    std::map<std::string, std::string>& values) {
  Json json = Json::object();
  for (const auto& [name, text] : values) json[name] = Json::parse(text, nullptr, false);
  fields.Field(key, json, presence);
  if (!fields.reading()) return;
  if (!json.is_object()) return fields.Fail(key, "an object is needed here");
  for (const auto& [name, value] : json.items()) values[name] = value.dump();
}

// Why `value` is not one that the JSON schema of a number, a boolean or names takes; empty if it
// is.
std::string WhyNotA(const Json& schema, const Json& value) {
  if (const auto names = schema.find("enum"); names != schema.end()) {
    const std::vector<std::string> known = names->get<std::vector<std::string>>();
    if (std::find(names->begin(), names->end(), value) != names->end()) return "";
    return absl::StrCat("unknown name ", value.dump(),
                        DidYouMean(value.is_string() ? value.get<std::string>() : "", known));
  }
  const std::string type = TextOf(schema, "type");
  if (type == "boolean")
    return value.is_boolean()
               ? ""
               : absl::StrCat("true or false is needed here, not ", value.type_name());
  if (type == "integer" ? !value.is_number_integer() : !value.is_number())
    return absl::StrCat(type == "integer" ? "a whole number" : "a number", " is needed here, not ",
                        value.type_name());
  const double lowest = FiniteOf(schema, "minimum").value_or(-HUGE_VAL);
  const double highest = FiniteOf(schema, "maximum").value_or(HUGE_VAL);
  if (value.get<double>() < lowest || value.get<double>() > highest)
    return absl::StrCat(value.dump(), " is out of range: ", lowest, " to ", highest);
  return "";
}

void DescribeAdapterOptions(Fields& fields, std::map<std::string, std::string>& options) {
  for (const Dimension& dimension : Dimensions()) {
    if (dimension.adapter_default == nullptr) continue;
    const Json plain = Json::parse(dimension.adapter_default);
    const auto asked = options.find(dimension.name);
    Json value = asked != options.end()        ? Json::parse(asked->second, nullptr, false)
                 : dimension.is_always_written ? plain
                                               : Json();
    fields.Field(dimension.name, value, Presence::kOmitted);
    if (!fields.reading() || value.is_null() || value == plain) continue;
    const std::string why = WhyNotA(Json::parse(dimension.schema), value);
    if (!why.empty()) return fields.Fail(dimension.name, why);
    options[dimension.name] = value.dump();
  }
}

void DescribeConfig(Fields& fields, std::map<std::string, std::string>& config) {
  DescribeValues(fields, "config", Presence::kOmitted, config);
  if (!fields.reading()) return;
  for (const auto& [name, text] : config) {
    const std::vector<std::string>& known = ConfigNumbers();
    if (std::find(known.begin(), known.end(), name) == known.end())
      fields.Fail("config", absl::StrCat("unknown name '", name, "'", DidYouMean(name, known)));
    const Json value = Json::parse(text, nullptr, false);
    if (!value.is_number() && !value.is_boolean())
      fields.Fail("config", absl::StrCat(name, " is a number or a boolean, not ", text));
  }
}

void DescribeInput(Fields& fields, std::string& input) {
  fields.Field("input", input, Presence::kOptional);
  if (!fields.reading()) return;
  const absl::StatusOr<std::string> form = InputFormOf(input);
  if (!form.ok()) return fields.Fail("input", std::string(form.status().message()));
  input = *form;
}

// Left out at its default, so that what was recorded before the field existed stays valid.
void DescribeLater(Fields& fields, const char* key, std::string& value,
                   const std::vector<std::string>& known) {
  std::string written = value == known.front() ? "" : value;
  fields.OneOf(key, written, known, Presence::kOmitted);
  if (fields.reading() && !written.empty()) value = written;
}

void DescribeDealing(Fields& fields, Probe& probe) {
  constexpr int64_t kMost = 1 << 20;
  fields.Int("global_batch_size", probe.global_batch_size, 0, kMost, Presence::kOmitted);
  fields.Int("max_length", probe.max_length, 0, kMost, Presence::kOmitted);
  fields.OneOf("truncation", probe.truncation, Truncations(), Presence::kOmitted);
  Json dealt = probe.dealt.empty() ? Json() : Json(probe.dealt);
  fields.Field("dealt", dealt, Presence::kOmitted);
  if (!fields.reading()) return;
  if (!dealt.is_null() && !ReadLists(dealt, probe.dealt))
    return fields.Fail("dealt", "a list of lists of whole numbers is needed here");
  if (probe.drive != "trainer") {
    for (const auto& [is_asked, field] :
         {std::pair(probe.global_batch_size > 0, "global_batch_size"),
          std::pair(probe.max_length > 0, "max_length")}) {
      if (is_asked) fields.Fail(field, "it is read by trainers: ask for drive=trainer, too");
    }
  }
  if (probe.max_length == 0 && !probe.truncation.empty())
    return fields.Fail("truncation", "set it only together with max_length");
  if (probe.max_length > 0 && probe.truncation.empty())
    return fields.Fail("truncation", absl::StrCat("missing: ", absl::StrJoin(Truncations(), ", ")));
  const int64_t kept = std::ssize(KeptDocuments(probe));
  if (kept == 0) return fields.Fail("max_length", "every document is longer");
  if (probe.global_batch_size > kept)
    fields.Fail("global_batch_size", absl::StrCat("a trainer cannot take ", probe.global_batch_size,
                                                  " documents for a step: its file has ", kept));
  if (!probe.dealt.empty() && std::ssize(probe.dealt) != probe.steps)
    return fields.Fail("dealt", "each step has its documents");
  for (const std::vector<int64_t>& documents : probe.dealt) {
    for (const int64_t document : documents) {
      if (document < 0 || document >= kept) return fields.Fail("dealt", "no such document");
    }
  }
}

// `ppo` is written with the objective that reads it.
void DescribeObjective(Fields& fields, Probe& probe) {
  DescribeLater(fields, "objective", probe.objective, {"sft", "ppo"});
  const bool is_ppo = probe.objective == "ppo";
  fields.Field("ppo", probe.ppo, is_ppo ? Presence::kOptional : Presence::kOmitted);
  if (!fields.reading()) return;
  if (is_ppo && probe.drive != "trainer")
    fields.Fail("objective",
                "ppo is what a trainer's workers minimise: ask for drive=trainer, too");
  if (!is_ppo && !probe.ppo.empty()) fields.Fail("ppo", "set it only together with objective=ppo");
}

// Left out at its default of 1.
void DescribeTemperature(Fields& fields, double& temperature) {
  double written = temperature == 1 ? 0 : temperature;
  fields.Field("temperature", written, Presence::kOmitted);
  if (!fields.reading() || written == 0) return;
  if (written < 0) return fields.Fail("temperature", "a positive number is needed here");
  temperature = written;
}

// `ranks` follows from the layout. It is older, and always written.
void DescribeLayout(Fields& fields, Layout& layout) {
  std::string text = layout == Layout() ? "" : LayoutText(layout);
  fields.Field("layout", text, Presence::kOmitted);
  if (fields.reading() && !text.empty()) {
    const absl::StatusOr<Layout> read = ParseLayout(text);
    if (!read.ok()) return fields.Fail("layout", std::string(read.status().message()));
    layout = *read;
  }
  int ranks = layout.ranks();
  fields.Int("ranks", ranks, 1, 1024, Presence::kOptional);
  if (fields.reading() && ranks != 1 && ranks != layout.ranks())
    fields.Fail("ranks", absl::StrCat("the layout ", LayoutText(layout), " has ", layout.ranks(),
                                      ": leave ranks out and write a layout, for example "
                                      "dp_shard=2"));
}

// What is left of the full rate at a step after the warm-up.
double DecayAt(const OptimizerSettings& settings, int step) {
  if (settings.decay.empty()) return 1;
  const double progress = static_cast<double>(step - settings.warmup_steps) /
                          (settings.total_steps - settings.warmup_steps);
  const double left =
      settings.decay == "linear" ? 1 - progress : (1 + std::cos(M_PI * progress)) / 2;
  return settings.min_lr_factor + (1 - settings.min_lr_factor) * left;
}

void DescribeDecay(Fields& fields, OptimizerSettings& settings) {
  fields.OneOf("decay", settings.decay, DecayTypes(), Presence::kOmitted);
  fields.Int("total_steps", settings.total_steps, 0, 1000000, Presence::kOmitted);
  fields.Field("min_lr_factor", settings.min_lr_factor, Presence::kOmitted);
  if (!fields.reading()) return;
  if (settings.decay.empty()) {
    if (settings.total_steps != 0) fields.Fail("total_steps", "set it only together with decay");
    if (settings.min_lr_factor != 0)
      fields.Fail("min_lr_factor", "set it only together with decay");
    return;
  }
  if (settings.total_steps == 0)
    fields.Fail("total_steps", "missing: the number of steps after which the decay ends");
  if (settings.total_steps <= settings.warmup_steps)
    fields.Fail("total_steps",
                "a decay begins after the warm-up: more than warmup_steps is needed");
  if (settings.min_lr_factor < 0 || settings.min_lr_factor >= 1)
    fields.Fail("min_lr_factor", "a number from 0 to below 1 is needed here");
}

}  // namespace

const std::vector<std::string>& ConfigNumbers() {
  static const auto& names = *new std::vector<std::string>{"attn_logit_softcapping",
                                                           "final_logit_softcapping",
                                                           "head_dim",
                                                           "hidden_size",
                                                           "intermediate_size",
                                                           "moe_intermediate_size",
                                                           "num_attention_heads",
                                                           "num_experts_per_tok",
                                                           "num_hidden_layers",
                                                           "num_key_value_heads",
                                                           "query_pre_attn_scalar",
                                                           "rms_norm_eps",
                                                           "rope_theta",
                                                           "sliding_window",
                                                           "tie_word_embeddings",
                                                           "use_cache",
                                                           "vocab_size"};
  return names;
}

const std::vector<std::string>& WarmupSchedules() {
  static const auto& names = *new std::vector<std::string>{"zero-based", "one-based"};
  return names;
}

const std::vector<std::string>& Truncations() {
  static const auto& names = *new std::vector<std::string>{"right", "left", "drop"};
  return names;
}

ChatLengths ChatLengthsOf(const std::string& chat_template) {
  if (chat_template == "chatml") return {.document = 0, .turn = 5, .trailing = 1};
  if (chat_template == "llama3") return {.document = 1, .turn = 5, .trailing = 0};
  return {.document = 0, .turn = 3, .trailing = 0};
}

int64_t ShortestConversation(const Probe& probe) {
  const ChatLengths lengths = ChatLengthsOf(probe.chat_template);
  return probe.data == "single" ? ShortestWithAnswer(probe) : lengths.document + lengths.turn;
}

int64_t ShortestWithAnswer(const Probe& probe) {
  const ChatLengths lengths = ChatLengthsOf(probe.chat_template);
  // Of "single", a conversation ends with its last end token, which is no input.
  return lengths.document + 2 * lengths.turn - (probe.data == "single" ? lengths.trailing + 1 : 0);
}

const std::vector<std::string>& DecayTypes() {
  static const auto& names = *new std::vector<std::string>{"linear", "cosine"};
  return names;
}

std::vector<std::vector<int64_t>> DefaultDocuments() {
  return {{37, 150, 64, 20, 9}, {262, 1, 29}, {9, 70, 1, 130, 26, 44}};
}

std::vector<int64_t> DocumentsOf(const Probe& probe, int step) {
  if (probe.drive == "trainer") {
    const std::vector<int64_t> kept = KeptLengths(probe);
    std::vector<int64_t> dealt;
    for (const int64_t document : DealtIn(probe, step)) dealt.push_back(kept[document]);
    return dealt;
  }
  const size_t layouts = probe.documents.size();
  std::vector<int64_t> lengths = probe.documents[step % layouts];
  std::rotate(lengths.begin(), lengths.begin() + step / layouts % lengths.size(), lengths.end());
  return lengths;
}

double OptimizerSettings::WeightDecayOf(absl::string_view parameter) const {
  const bool is_exempt =
      absl::StrContains(parameter, "norm") || absl::StrContains(parameter, "bias");
  return !undecayed.empty() && is_exempt ? 0 : weight_decay;
}

double LearningRateAt(const OptimizerSettings& settings, int step) {
  if (step >= settings.warmup_steps) return settings.learning_rate * DecayAt(settings, step);
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
  DescribeDecay(fields, settings);
  fields.OneOf("undecayed", settings.undecayed, {"norms-and-biases"}, Presence::kOmitted);
  if (!fields.reading()) return;
  if (settings.warmup_steps > 0 && settings.schedule.empty())
    fields.Fail("schedule", "missing: zero-based (HF) or one-based (torchtitan)");
  if (settings.warmup_steps == 0 && !settings.schedule.empty())
    fields.Fail("schedule", "set it only together with warmup_steps");
}

void Describe(Fields& fields, PpoSettings& settings) {
  fields.Field("clip_low", settings.clip_low, Presence::kOptional);
  fields.Field("clip_high", settings.clip_high, Presence::kOptional);
  fields.Field("clip_dual", settings.clip_dual, Presence::kOptional);
  fields.Field("clip_value", settings.clip_value, Presence::kOptional);
  if (!fields.reading()) return;
  if (!(settings.clip_low > 0 && settings.clip_low < 1))
    fields.Fail("clip_low", "a number between 0 and 1 is needed here");
  if (!(settings.clip_high > 0)) fields.Fail("clip_high", "a positive number is needed here");
  if (!(settings.clip_dual > 1)) fields.Fail("clip_dual", "a number above 1 is needed here");
  if (!(settings.clip_value > 0)) fields.Fail("clip_value", "a positive number is needed here");
}

Json ToJson(const OptimizerSettings& optimizer) { return Json(WriteFields(optimizer)); }

void Describe(Fields& fields, Probe& probe) {
  fields.Field("model", probe.model);
  fields.Field("attention", probe.attention, Presence::kOptional);
  fields.Field("precision", probe.precision, Presence::kOptional);
  fields.Field("device", probe.device, Presence::kOptional);
  DescribeLayout(fields, probe.layout);
  fields.Int("threads", probe.threads, 1, 1024, Presence::kOptional);
  fields.Int("steps", probe.steps, 1, 100, Presence::kOptional);
  fields.Int("seed", probe.seed, 0, INT64_MAX, Presence::kOptional);
  DescribeDocuments(fields, probe.documents);
  if (probe.documents.empty()) return;  // not readable: the complaint is kept
  DescribeLater(fields, "drive", probe.drive, {"engine", "trainer"});
  DescribeLater(fields, "data", probe.data, {"turns", "marked", "single"});
  DescribeLater(fields, "chat_template", probe.chat_template, {"words", "chatml", "llama3"});
  DescribeDealing(fields, probe);
  fields.OneOf("head", probe.head, {"lm", "value"}, Presence::kOptional);
  DescribeObjective(fields, probe);
  DescribeInput(fields, probe.input);
  fields.Int("micro_batches", probe.micro_batches, 1, FewestDocuments(probe), Presence::kOptional);
  DescribeAdapterOptions(fields, probe.adapter_options);
  fields.Field("export_weights", probe.export_weights, Presence::kOmitted);
  fields.Field("resume_checkpoint", probe.resume_checkpoint, Presence::kOmitted);
  DescribeLater(fields, "checkpoint", probe.checkpoint, {"single-fp32", "sharded-bf16", "mxfp4"});
  DescribeLater(fields, "rope_keys", probe.rope_keys, {"both", "rope_theta", "rope_parameters"});
  DescribeTemperature(fields, probe.temperature);
  fields.Field("entropy", probe.entropy, Presence::kOmitted);
  DescribeConfig(fields, probe.config);
  DescribeValues(fields, "engine_options", Presence::kOptional, probe.engine_options);
  fields.Field("optimizer", probe.optimizer, Presence::kOptional);
  if (fields.reading() && !probe.optimizer.decay.empty() &&
      probe.optimizer.total_steps < probe.steps)
    fields.Fail("optimizer", absl::StrCat("total_steps is ", probe.optimizer.total_steps,
                                          ", but the cell trains ", probe.steps, " steps"));
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
  for (const char* key :
       {"drive", "data", "chat_template", "objective", "ppo", "global_batch_size", "max_length",
        "truncation", "dealt", "checkpoint", "rope_keys", "config", "temperature", "entropy"}) {
    if (all.contains(key)) json[key] = all[key];
  }
  return json;
}

}  // namespace bkm
