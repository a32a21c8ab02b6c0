// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/engine_kind.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "harness/model/probe.h"

namespace bkm {
namespace {

// Clauses of EngineKind::without_golden.
constexpr char kDebugFlavor[] =
    "it is torchtitan's debugmodel, whose experts are scored by softmax, and transformers' class "
    "has "
    "sigmoid only: ask for deepseek_v3_published";
constexpr char kPublishedModel[] =
    "torchtitan builds flavors, and the one of the probe's sizes, debugmodel, scores experts by "
    "softmax: ask for deepseek_v3";

constexpr char kNotInTorchtitan[] = "torchtitan has no such model";

// verl's configuration of its SFT trainer (trainer/config/sft_trainer_engine.yaml, optim/*.yaml).
std::map<std::string, std::string> NamesOfVerl(const std::string& decay,
                                               const std::string& least_rate) {
  return {{"data.train_batch_size", "/global_batch_size"},
          {"data.max_length", "/max_length"},
          {"data.truncation", "/truncation"},
          {"trainer.total_training_steps", "/steps"},
          {"optim.lr", "/optimizer/learning_rate"},
          {"optim.weight_decay", "/optimizer/weight_decay"},
          {"optim.clip_grad", "/optimizer/clip_norm"},
          {"optim.lr_warmup_steps", "/optimizer/warmup_steps"},
          {decay, "/optimizer/decay"},
          {least_rate, "/optimizer/min_lr_factor"}};
}

// Adapters construct the engine's class themselves.
constexpr char kVerlsOwn[] = "verl's workers and configuration files";

void TakeTrainersNames(const EngineKind& kind, Json& probe) {
  const auto options = probe.find("engine_options");
  if (options == probe.end() || !options->is_object()) return;
  Json left = Json::object();
  bool decays = false;
  for (const auto& [name, value] : options->items()) {
    const auto known = kind.trainer_names.find(name);
    const Json::json_pointer field(known == kind.trainer_names.end() ? "" : known->second);
    if (known == kind.trainer_names.end() || probe.contains(field)) {
      left[name] = value;
    } else if (known->second != "/optimizer/decay") {
      probe[field] = value;
    } else if (value != "constant") {
      probe[field] = value;
      decays = true;
    }
  }
  probe["engine_options"] = left;
  if (decays && !probe.contains("/optimizer/total_steps"_json_pointer))
    probe["optimizer"]["total_steps"] = probe.value("/steps"_json_pointer, Json(Probe().steps));
}

}  // namespace

const std::vector<EngineKind>& EngineKinds() {
  const std::vector<std::string> of_transformers = {"eager", "sdpa", "flex_attention",
                                                    "flash_attention_2", "flash_attention_3"};
  static const auto& kinds = *new std::vector<EngineKind>{
      {.name = "verl-torchtitan",
       .engine_source = "verl",
       .library_source = "torchtitan",
       .library_in_runtime = false,
       .control = "torchtitan",
       .attentions = {"flex", "varlen", "sdpa", "flex_flash"},
       .precision = "bf16",
       .own_precision = "bf16",
       .own_options = {},
       .schedule = "one-based",
       .decays = {"linear", "cosine"},
       .inputs = {"padded"},
       .cuts_by_tokens = true,
       .looks_for_checkpoints = true,
       .has_value_head = false,
       .exports_weights = true,
       .saves_checkpoints = true,
       .layouts = {"dp_replicate", "dp_shard", "tp", "cp", "pp", "ep"},
       .trainer = "verl.trainer.sft_trainer",
       .drops_last = true,
       .trainer_layouts = {"dp_replicate", "dp_shard"},
       .truncations = {"right", "left"},
       .trainer_names = NamesOfVerl("optim.decay_type", "optim.min_lr_factor"),
       .not_driven = kVerlsOwn,
       .without_golden = {{"qwen3_moe",
                           "verl looks a flavor of torchtitan up by width, layers and vocabulary, "
                           "and at the probe's sizes finds the dense one"},
                          {"deepseek_v3_published", kPublishedModel},
                          {"gemma2", kNotInTorchtitan}},
       .judged_by_ending_only = false,
       .entry_modules = {"verl.trainer.config", "verl.utils.tensordict_utils",
                         "verl.utils.dataset.dataset_utils", "verl.workers.config",
                         "verl.workers.utils.losses",
                         "verl.workers.engine.torchtitan.transformer_impl"},
       .entry_class = "TorchTitanEngineWithLMHead",
       .entry_methods = {"initialize"}},
      {.name = "verl-fsdp",
       .engine_source = "verl",
       .library_source = "transformers",
       .library_in_runtime = true,
       .control = "transformers",
       .attentions = of_transformers,
       .precision = "fp32",
       .own_precision = "bf16",
       .own_options = {{"strategy", "\"default\""}},
       .schedule = "zero-based",
       .decays = {"cosine"},
       .inputs = {"padded"},
       .cuts_by_tokens = true,
       .looks_for_checkpoints = false,
       .has_value_head = true,
       .exports_weights = true,
       .saves_checkpoints = true,
       .layouts = {"dp_replicate", "dp_shard", "ulysses"},
       .chooses_fsdp = true,
       .trainer = "verl.trainer.sft_trainer",
       .drops_last = true,
       .trainer_exports = true,
       .trainer_layouts = {"dp_replicate", "dp_shard"},
       .truncations = {"right", "left"},
       .policy_trainer = "verl.trainer.ppo.ray_trainer",
       .trainer_names = NamesOfVerl("optim.lr_scheduler_type", "optim.min_lr_ratio"),
       .not_driven = kVerlsOwn,
       .without_golden = {{"deepseek_v3", kDebugFlavor}},
       .judged_by_ending_only = false},
      {.name = "torchtitan",
       .engine_source = "",
       .library_source = "torchtitan",
       .library_in_runtime = false,
       .control = "",
       .attentions = {"flex", "varlen", "sdpa", "flex_flash"},
       .precision = "bf16",
       .own_precision = "bf16",
       .own_options = {},
       .schedule = "one-based",
       .decays = {"linear", "cosine"},
       .inputs = {},
       .cuts_by_tokens = false,
       .looks_for_checkpoints = false,
       .has_value_head = false,
       .exports_weights = false,
       .saves_checkpoints = false,
       .layouts = {"dp_replicate", "dp_shard", "tp", "cp", "ep"},
       .trainer = "torchtitan.train",
       .trainer_data = {"single"},
       .trainer_layouts = {"dp_replicate", "dp_shard"},
       .truncations = {"drop"},
       .row_multiple = 8,  // ChunkedLossWrapper.Config.num_chunks
       .trainer_names = {{"training.global_batch_size", "/global_batch_size"},
                         {"training.seq_len", "/max_length"},
                         {"training.steps", "/steps"},
                         {"training.max_norm", "/optimizer/clip_norm"},
                         {"optimizer.lr", "/optimizer/learning_rate"},
                         {"lr_scheduler.warmup_steps", "/optimizer/warmup_steps"}},
       .without_golden = {{"deepseek_v3_published", kPublishedModel}, {"gemma2", kNotInTorchtitan}},
       .judged_by_ending_only = false},
      {.name = "transformers",
       .engine_source = "",
       .library_source = "transformers",
       .library_in_runtime = true,
       .control = "",
       .attentions = of_transformers,
       .precision = "fp32",
       .own_precision = "fp32",
       .own_options = {},
       .schedule = "zero-based",
       .decays = {"linear", "cosine"},
       .inputs = {"rows", "tail", "lengths", "mask", "padded", "left", "positions"},
       .cuts_by_tokens = false,
       .looks_for_checkpoints = false,
       .has_value_head = false,
       .exports_weights = true,
       .saves_checkpoints = false,
       .layouts = {"dp_replicate", "dp_shard", "tp"},
       .needs = {{"tp", "accelerate", [](const Probe& probe) { return probe.layout.tp > 1; }},
                 {"a checkpoint in mxfp4", "accelerate",
                  [](const Probe& probe) { return probe.checkpoint == "mxfp4"; }}},
       .without_golden = {{"deepseek_v3", kDebugFlavor}},
       .judged_by_ending_only = false},
      {.name = "transformers-trainer",
       .engine_source = "",
       .library_source = "transformers",
       .library_in_runtime = true,
       .control = "",
       .attentions = of_transformers,
       .precision = "fp32",
       .own_precision = "fp32",
       .own_options = {},
       .schedule = "zero-based",
       .decays = {"linear", "cosine"},
       .inputs = {"padded"},
       .cuts_by_tokens = false,
       .looks_for_checkpoints = false,
       .has_value_head = false,
       .exports_weights = false,
       .saves_checkpoints = false,
       .layouts = {"dp_replicate"},
       .trainer = "transformers.Trainer",
       .only_by_trainer = true,
       .trainer_exports = true,
       .trainer_data = {"marked"},
       .trainer_layouts = {"dp_replicate"},
       .trainer_names = {{"gradient_accumulation_steps", "/micro_batches"},
                         {"max_steps", "/steps"},
                         {"learning_rate", "/optimizer/learning_rate"},
                         {"adam_beta1", "/optimizer/beta1"},
                         {"adam_beta2", "/optimizer/beta2"},
                         {"adam_epsilon", "/optimizer/epsilon"},
                         {"weight_decay", "/optimizer/weight_decay"},
                         {"max_grad_norm", "/optimizer/clip_norm"},
                         {"warmup_steps", "/optimizer/warmup_steps"},
                         {"lr_scheduler_type", "/optimizer/decay"}},
       .undecayed = "norms-and-biases",
       .needs = {{"its Trainer", "accelerate", [](const Probe&) { return true; }}},
       .without_golden = {{"deepseek_v3", kDebugFlavor}},
       .judged_by_ending_only = false},
      // Tiny pairs in fixtures/packages that test the harness, not a library.
      {.name = "fixture",
       .engine_source = "fake_engine",
       .library_source = "fake_library",
       .library_in_runtime = false,
       .control = "",
       .attentions = {"flex"},
       .precision = "bf16",
       .own_precision = "bf16",
       .own_options = {},
       .schedule = "zero-based",
       .decays = {},
       .inputs = {},
       .cuts_by_tokens = false,
       .looks_for_checkpoints = false,
       .has_value_head = false,
       .exports_weights = false,
       .saves_checkpoints = false,
       .layouts = {},
       .judged_by_ending_only = true,
       .entry_modules = {"fake_engine"},
       .entry_class = "Engine"},
  };
  return kinds;
}

const EngineKind* FindEngineKind(absl::string_view name) {
  for (const EngineKind& kind : EngineKinds()) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

void FillInFor(const EngineKind& kind, Json& probe) {
  const bool is_for_trainers =
      kind.only_by_trainer || probe.value("/objective"_json_pointer, Json()) == "ppo";
  if (is_for_trainers && !probe.contains("drive")) probe["drive"] = "trainer";
  if (probe.value("/drive"_json_pointer, Json()) == "trainer") TakeTrainersNames(kind, probe);
  const auto optimizer = [&](const char* name, const std::string& value) {
    if (!probe["optimizer"].contains(name)) probe["optimizer"][name] = value;
  };
  // A warm-up is counted as the engine counts it.
  const Json warmup = probe.value("/optimizer/warmup_steps"_json_pointer, Json());
  if (warmup.is_number_integer() && warmup != 0) optimizer("schedule", kind.schedule);
  if (probe.value("/drive"_json_pointer, Json()) != "trainer") return;
  if (!probe.contains("data")) probe["data"] = kind.trainer_data.front();
  if (probe.contains("max_length") && !probe.contains("truncation") && !kind.truncations.empty())
    probe["truncation"] = kind.truncations.front();
  if (!kind.undecayed.empty()) optimizer("undecayed", kind.undecayed);
}

std::string ShortTitle(const EngineKind& kind) {
  if (!kind.engine_source.empty())
    return absl::StrCat(kind.engine_source, " on ", kind.library_source);
  return absl::StrCat(kind.library_source, kind.only_by_trainer ? " by its own trainer" : " alone");
}

std::vector<std::string> EngineKindNames() {
  std::vector<std::string> names;
  for (const EngineKind& kind : EngineKinds()) names.push_back(kind.name);
  return names;
}

std::vector<const EngineKind*> KindsAmong(
    const std::function<bool(const std::string& source)>& is_there) {
  std::vector<const EngineKind*> kinds;
  std::set<std::string> with_engine;
  for (const EngineKind& kind : EngineKinds()) {
    if (kind.judged_by_ending_only || !is_there(kind.library_source)) continue;
    const bool is_control = kind.engine_source.empty();
    if (is_control ? with_engine.contains(kind.library_source) : !is_there(kind.engine_source))
      continue;
    with_engine.insert(kind.library_source);
    kinds.push_back(&kind);
  }
  return kinds;
}

}  // namespace bkm
