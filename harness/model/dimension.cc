// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/model/dimension.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "harness/base/status_macros.h"
#include "harness/model/engine_kind.h"
#include "harness/model/input_form.h"

namespace bkm {
namespace {

std::string ListText(const std::vector<std::string>& items) {
  return absl::StrJoin(items, "+", [](std::string* out, const std::string& item) {
    absl::StrAppend(out, EscapedText(item, "+"));
  });
}

// JSON ends by itself, so a '+' inside a value separates nothing.
std::string ValuesText(const std::map<std::string, std::string>& values) {
  return absl::StrJoin(values, "+", [](std::string* out, const auto& value) {
    absl::StrAppend(out, EscapedText(value.first, "+:"), ":", EscapedText(value.second));
  });
}

// 37+150/64+20: the layouts of two steps.
std::string DocumentsText(const Cell& cell) {
  return absl::StrJoin(cell.probe.documents, "/", [](std::string* out, const auto& lengths) {
    absl::StrAppend(out, absl::StrJoin(lengths, "+"));
  });
}

// Of settings, those that differ from their defaults: clip_norm:0.5+warmup_steps:1.
std::string SettingsText(const Json& settings, const Json& defaults) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : settings.items()) {
    if (defaults.value(name, Json()) == value || name == "undecayed") continue;  // the kind's
    parts.push_back(
        absl::StrCat(name, ":", value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return absl::StrJoin(parts, "+");
}

std::string OptimizerText(const Cell& cell) {
  static const Json& defaults = *new Json(ToJson(OptimizerSettings()));
  return SettingsText(ToJson(cell.probe.optimizer), defaults);
}

std::string PpoText(const Cell& cell) {
  static const Json& defaults = *new Json(WriteFields(PpoSettings()));
  return SettingsText(Json(WriteFields(cell.probe.ppo)), defaults);
}

bool Has(const std::vector<std::string>& words, const char* word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// A pattern of the words in their order: "^(packed([+]rows)?|padded([+]left)?)$".
const char* InputSchema() {
  static const std::string& schema = *new std::string([] {
    std::string forms;
    for (const InputWord& word : InputWords()) {
      const bool is_first = word.name == absl::string_view(word.of);
      absl::StrAppend(&forms, is_first ? (forms.empty() ? "" : "|") : "([+]", word.name,
                      is_first ? "" : ")?");
    }
    return Json({{"pattern", absl::StrCat("^(", forms, ")$")}}).dump();
  }());
  return schema.c_str();
}

// A word of the input's form, of the kinds that take it.
std::vector<AskedAspect> InputAspects() {
  std::vector<AskedAspect> aspects;
  for (const InputWord& word : InputWords()) {
    if (word.name == Probe().input) continue;
    aspects.push_back(
        {word.says, [word](const Probe& p) { return Has(WordsBesidePacked(p.input), word.name); },
         "", [word](const EngineKind& kind) { return Has(kind.inputs, word.name); }});
  }
  return aspects;
}

// The inverses: what such a text is in a probe's JSON.
absl::StatusOr<Json> WordIn(absl::string_view text) { return UnescapedText(text); }

absl::StatusOr<Json> ValueIn(absl::string_view text) {
  const std::string plain = UnescapedText(text);
  Json value = Json::parse(plain, nullptr, false);
  return value.is_discarded() ? Json(plain) : value;
}

// Whether `text` begins a list, an object or a string of JSON and does not end it.
bool IsOpenJson(const std::string& text) {
  return !text.empty() && absl::string_view("[{\"").find(text[0]) != absl::string_view::npos &&
         Json::parse(text, nullptr, false).is_discarded();
}

// "name:value+name:value" as an object. A '+' may also lie in a value of JSON, or in 1e+20.
absl::StatusOr<Json> ValuesIn(absl::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (absl::string_view part : absl::StrSplit(text, '+', absl::SkipEmpty())) {
    const bool has_name = part.find(':') != absl::string_view::npos;
    if (has_name && (pairs.empty() || !IsOpenJson(UnescapedText(pairs.back().second))))
      pairs.push_back(absl::StrSplit(part, absl::MaxSplits(':', 1)));
    else if (!pairs.empty())
      absl::StrAppend(&pairs.back().second, "+", part);
    else
      return absl::InvalidArgumentError(absl::StrCat("'", part, "' is not NAME:VALUE"));
  }
  Json values = Json::object();
  for (const auto& [name, value] : pairs) values[UnescapedText(name)] = *ValueIn(value);
  return values;
}

absl::StatusOr<Json> DocumentsIn(absl::string_view text) {
  Json documents = Json::array();
  for (absl::string_view layout : absl::StrSplit(text, '/')) {
    Json& lengths = documents.emplace_back(Json::array());
    for (absl::string_view length : absl::StrSplit(layout, '+'))
      lengths.push_back(*ValueIn(length));
  }
  return documents;
}

std::string SubjectText(const std::optional<SubjectSpec>& subject) {
  return subject ? EscapedText(subject->ToString()) : "";
}

// The subject with its revision as the user wrote it.
std::string AskedSubject(const std::optional<SubjectSpec>& subject, const std::string& label) {
  if (!subject) return "";
  SubjectSpec asked = *subject;
  if (!label.empty()) asked.revision = label;
  return EscapedText(asked.ToString());
}

std::string EngineText(const Cell& cell) {
  return cell.engine_subject ? absl::StrCat(cell.engine, "@", SubjectText(cell.engine_subject))
                             : cell.engine;
}

std::string AskedEngine(const Cell& cell) {
  return cell.engine_subject
             ? absl::StrCat(cell.engine, "@", AskedSubject(cell.engine_subject, cell.engine_label))
             : cell.engine;
}

std::vector<std::string> EngineNames(const Cell& cell) {
  return {cell.engine, EscapedText(cell.engine_label),
          AskedSubject(cell.engine_subject, cell.engine_label), SubjectText(cell.engine_subject)};
}

std::string LibraryText(const Cell& cell) {
  return cell.library_subject ? SubjectText(cell.library_subject) : "resolved";
}

std::string AskedLibrary(const Cell& cell) {
  return cell.library_subject ? AskedSubject(cell.library_subject, cell.library_label) : "resolved";
}

std::vector<std::string> LibraryNames(const Cell& cell) {
  return {EscapedText(cell.library_label)};
}

std::string BoolText(bool value) { return value ? "true" : "false"; }

// A field of the probe that only the cell's Python reads, in the words of its JSON.
std::string AdapterText(const Cell& cell, const char* name, const char* default_value) {
  const auto it = cell.probe.adapter_options.find(name);
  return EscapedText(it == cell.probe.adapter_options.end() ? default_value : it->second);
}

// The rest of an option that only the cell's Python reads. `words` says what a row was tested with;
// empty where something else says so.
Dimension OfAdapters(Dimension option, std::string words) {
  const char *name = option.name, *plain = option.adapter_default;
  option.text = [name, plain](const Cell& cell) { return AdapterText(cell, name, plain); };
  option.field = name;
  option.value = ValueIn;
  if (!words.empty()) {
    option.aspects = {{std::move(words), [name](const Probe& probe) {
                         return probe.adapter_options.contains(name);
                       }}};
  }
  return option;
}

// The rest of an option that only trainers read.
Dimension OfTrainers(Dimension option) {
  option.use = DimensionUse::kOption;
  option.field = option.name;
  option.flag_form = FlagForm::kValues;
  option.of_kind = [](const EngineKind& kind) { return !kind.trainer.empty(); };
  option.lacks = "has no trainer that a cell can start";
  return option;
}

bool HasEngineOption(const Probe& probe, const char* name, absl::string_view value) {
  const auto option = probe.engine_options.find(name);
  return option != probe.engine_options.end() && option->second == value;
}

// Whether settings of AdamW differ that no other aspect names.
bool HasOtherAdamW(const Probe& probe) {
  const OptimizerSettings &asked = probe.optimizer, plain;
  return asked.learning_rate != plain.learning_rate || asked.beta1 != plain.beta1 ||
         asked.beta2 != plain.beta2 || asked.epsilon != plain.epsilon ||
         asked.weight_decay != plain.weight_decay;
}

// Engine, library and where they run.
std::vector<Dimension> OfThePairing() {
  using enum DimensionUse;
  return {
      {.name = "engine",
       .use = kMain,
       .text = EngineText,
       .asked = AskedEngine,
       .names = EngineNames},
      {.name = "library",
       .use = kMain,
       .text = LibraryText,
       .asked = AskedLibrary,
       .names = LibraryNames},
      {.name = "runtime",
       .use = kMain,
       .text = [](const Cell& c) { return EscapedText(c.runtime); },
       .flag_form = FlagForm::kValues,
       .help = "Name of a policy in matrices/runtimes (default: cpu)"},
      {.name = "torch",
       .use = kMain,
       .text = [](const Cell& c) { return EscapedText(c.torch); },
       .flag_form = FlagForm::kValues,
       .help = "torch version (default: that of the runtime)"},
      {.name = "relax",
       .use = kDetail,
       .text = [](const Cell& c) { return ListText(c.relax); },
       .help = "Packages whose declared version requirement is ignored when the runtime is "
               "resolved"},
      {.name = "lock", .use = kDetail, .text = [](const Cell& c) { return EscapedText(c.lock); }},
  };
}

// What is trained, and on what.
std::vector<Dimension> OfTheWorkload() {
  using enum DimensionUse;
  return {
      {.name = "model",
       .use = kMain,
       .text = [](const Cell& c) { return EscapedText(c.probe.model); },
       .field = "model",
       .value = WordIn,
       .flag_form = FlagForm::kValues,
       .help = "Model, for example qwen3"},
      {.name = "drive",
       .use = kOption,
       .text = [](const Cell& c) { return EscapedText(c.probe.drive); },
       .field = "drive",
       .value = WordIn,
       .flag_form = FlagForm::kValues,
       .help = "Who makes batches and steps: engine (a loop of bkm's own) or trainer (the engine's "
               "own, started from its entry point on data files)",
       .of_kind = [](const EngineKind& kind) { return !kind.trainer.empty(); },
       .lacks = "has no trainer that a cell can start",
       .for_control =
           [](Probe& p) {
             p.drive = Probe().drive;
             p.data = Probe().data;
             p.optimizer.undecayed.clear();
           },
       .aspects = {{"the engine's own trainer",
                    [](const Probe& p) { return p.drive == "trainer"; }}}},
      {.name = "data",
       .use = kDetail,
       .text = [](const Cell& c) { return EscapedText(c.probe.data); },
       .field = "data",
       .value = WordIn,
       .flag_form = FlagForm::kValues,
       .help = "Form of a trainer's data: turns (conversations of several turns), marked (the "
               "template marks what is trained) or single (a question and an answer, in rows of "
               "shifted labels); the engine kind's own unless told",
       .of_kind = [](const EngineKind& kind) { return !kind.trainer.empty(); },
       .lacks = "has no trainer that a cell can start"},
      OfTrainers(
          {.name = "chat_template",
           .text = [](const Cell& c) { return EscapedText(c.probe.chat_template); },
           .value = WordIn,
           .help = "Tokenizer and chat template of a trainer's data: words (a token a "
                   "word), chatml (byte-level BPE, as Qwen) or llama3 (byte-level BPE with "
                   "one begin token)",
           .for_control = [](Probe& p) { p.chat_template = Probe().chat_template; },
           .aspects = {{.words = "a byte-level tokenizer under its own trainer",
                        .is_asked = [](const Probe& p) { return p.chat_template != "words"; },
                        .of_kind = [](const EngineKind& kind) { return !kind.trainer.empty(); }}}}),
      OfTrainers({.name = "global_batch_size",
                  .text = [](const Cell& c) { return absl::StrCat(c.probe.global_batch_size); },
                  .value = ValueIn,
                  .help = "Documents that a trainer takes for a step, as it deals them (default: "
                          "all of its data file)",
                  .for_control = [](Probe& p) { p.global_batch_size = 0; }}),
      OfTrainers({.name = "max_length",
                  .text = [](const Cell& c) { return absl::StrCat(c.probe.max_length); },
                  .value = ValueIn,
                  .help = "The most tokens that a trainer keeps of a document (default: all)",
                  .for_control =
                      [](Probe& p) {
                        p.max_length = 0;
                        p.truncation.clear();
                      }}),
      OfTrainers({.name = "truncation",
                  .text = [](const Cell& c) { return EscapedText(c.probe.truncation); },
                  .value = WordIn,
                  .help = "What a trainer does with a document that is longer: right or left (it "
                          "cuts off that side); the engine kind's own unless told"}),
      {.name = "head",
       .use = kOption,
       .text = [](const Cell& c) { return EscapedText(c.probe.head); },
       .field = "head",
       .value = WordIn,
       .flag_form = FlagForm::kValues,
       .help = "lm (language model) or value (critic)",
       .of_kind = [](const EngineKind& kind) { return kind.has_value_head; },
       .lacks = "has no value head",
       .aspects = {{"a critic", [](const Probe& p) { return p.head == "value"; }}}},
      {.name = "objective",
       .use = kOption,
       .text = [](const Cell& c) { return EscapedText(c.probe.objective); },
       .field = "objective",
       .value = WordIn,
       .flag_form = FlagForm::kValues,
       .help =
           "What a step minimises: sft (cross entropy) or ppo (the clipped loss of a policy, or "
           "with head=value of a critic, on a roll-out, by the workers of the engine's trainer)",
       .of_kind = [](const EngineKind& kind) { return !kind.policy_trainer.empty(); },
       .lacks = "has no workers that update a policy on a roll-out",
       .for_control = [](Probe& p) { p.objective = Probe().objective; },
       .aspects =
           {{.words = "a policy's update on a drawn roll-out (PPO, without Ray)",
             .is_asked = [](const Probe& p) { return p.objective == "ppo" && p.head == "lm"; },
             .of_kind = [](const EngineKind& kind) { return !kind.policy_trainer.empty(); }},
            {.words = "a critic's update on a drawn roll-out (PPO, without Ray)",
             .is_asked = [](const Probe& p) { return p.objective == "ppo" && p.head == "value"; },
             .of_kind = [](const EngineKind& kind) { return !kind.policy_trainer.empty(); }}}},
      {.name = "ppo",
       .use = kOption,
       .text = PpoText,
       .field = "ppo",
       .value = ValuesIn,
       .flag_form = FlagForm::kValues,
       .help = "What objective=ppo clips: NAME:VALUE+NAME:VALUE with the names clip_low, clip_high "
               "(of the policy's ratio), clip_dual (of a bad token's loss), clip_value (of a "
               "critic's value)",
       .of_kind = [](const EngineKind& kind) { return !kind.policy_trainer.empty(); },
       .lacks = "has no workers that update a policy on a roll-out",
       .for_control = [](Probe& p) { p.ppo = Probe().ppo; }},
      {.name = "attention",
       .use = kMain,
       .text = [](const Cell& c) { return EscapedText(c.probe.attention); },
       .field = "attention",
       .value = WordIn,
       .flag_form = FlagForm::kValues,
       .help = "flex, varlen, sdpa; for Hugging Face models: eager, sdpa, flex_attention, "
               "flash_attention_2"},
      {.name = "precision",
       .use = kMain,
       .text = [](const Cell& c) { return EscapedText(c.probe.precision); },
       .field = "precision",
       .value = WordIn,
       .schema = R"({"enum": ["bf16", "fp32"]})",
       .flag_form = FlagForm::kValues,
       .help = "bf16 or fp32 (default: that of the engine kind)"},
      {.name = "device",
       .use = kMain,
       .text = [](const Cell& c) { return EscapedText(c.probe.device); },
       .field = "device",
       .value = WordIn,
       .schema = R"({"enum": ["cpu", "cuda"]})",
       .help = "cpu or cuda"},
      {.name = "layout",
       .use = kOption,
       .text = [](const Cell& c) { return LayoutText(c.probe.layout); },
       .field = "layout",
       .value = WordIn,
       .schema = R"({"pattern": "^(1|[a-z_]+=[1-9][0-9]*([+][a-z_]+=[1-9][0-9]*)*)$"})",
       .flag_form = FlagForm::kValues,
       .help = "How the ranks of a cell share the work, for example dp_shard=2 or "
               "dp_replicate=2+tp=2 (dp_replicate, dp_shard, tp, cp, pp, ep, ulysses; default: one "
               "rank)"},
      {.name = "ranks",
       .use = kDerived,
       .text = [](const Cell& c) { return absl::StrCat(c.probe.layout.ranks()); }},
      {.name = "threads",
       .use = kDetail,
       .text = [](const Cell& c) { return absl::StrCat(c.probe.threads); },
       .field = "threads",
       .value = ValueIn,
       .is_axis = false,
       .help = "Threads of each rank",
       .aspects = {{"more than 1 thread", [](const Probe& p) { return p.threads > 1; }}}},
      {.name = "documents",
       .use = kOption,
       .text = DocumentsText,
       .field = "documents",
       .value = DocumentsIn,
       .is_axis = false,
       .schema = R"({"oneOf": [
         {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 1}},
         {"type": "array", "minItems": 1, "items":
           {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 1}}}]})",
       .flag_form = FlagForm::kValue,
       .help = "Tokens of each packed document, for example 37+150+64; 37+150/64+20 for the "
               "documents of two steps",
       .aspects = {{"documents of other lengths",
                    [](const Probe& p) { return p.documents != DefaultDocuments(); }}}},
      {.name = "input",
       .use = kOption,
       .text = [](const Cell& c) { return EscapedText(c.probe.input); },
       .field = "input",
       .value = WordIn,
       .schema = InputSchema(),
       .flag_form = FlagForm::kValues,
       .help =
           "How the model is told where documents are: packed (positions) with +rows (two), +tail "
           "(padding), +lengths (cu_seq_lens), +mask; or padded (a row for each, verl's "
           "use_remove_padding=False) with +left, +positions",
       .of_kind = [](const EngineKind& kind) { return !kind.inputs.empty(); },
       .lacks = "takes packed input only",
       .for_control = [](Probe& p) { p.input = Probe().input; },
       .aspects = InputAspects()},
      {.name = "micro_batches",
       .use = kOption,
       .text = [](const Cell& c) { return absl::StrCat(c.probe.micro_batches); },
       .field = "micro_batches",
       .value = ValueIn,
       .flag_form = FlagForm::kValues,
       .help = "Number of micro-batches per step",
       .for_control = [](Probe& p) { p.micro_batches = 1; },
       .aspects = {{"micro-batches", [](const Probe& p) { return p.micro_batches > 1; }}}},
  };
}

// What is found in the cell's folder, and what is handed over.
std::vector<Dimension> OfFiles() {
  using enum DimensionUse;
  return {
      OfAdapters(
          {.name = "leftover_checkpoint",
           .use = kOption,
           .schema = R"({"type": "boolean"})",
           .adapter_default = "false",
           .is_always_written = true,
           .flag_form = FlagForm::kSwitch,
           .help = "Create an empty ./outputs/checkpoint in the cell's folder before it runs, as "
                   "an earlier run may leave it",
           .of_kind = [](const EngineKind& kind) { return kind.looks_for_checkpoints; },
           .lacks = "does not look for checkpoints by itself",
           .for_control = [](Probe& p) { p.adapter_options.erase("leftover_checkpoint"); }},
          "a checkpoint folder that an earlier run left"),
      OfAdapters(
          {.name = "kernels",
           .use = kOption,
           .schema = R"({"enum": ["stand-in", "real"]})",
           .adapter_default = R"("stand-in")",
           .flag_form = FlagForm::kValues,
           .help = "real: give a cell with flash_attention_2 no stand-in for flash_attn on a CPU, "
                   "where the real one does not run (default: stand-in)",
           .of_kind =
               [](const EngineKind& kind) { return Has(kind.attentions, "flash_attention_2"); },
           .lacks = "has no attention by flash_attn"},
          ""),  // a verdict says so where a stand-in ran (Verdict::blind)
      {.name = "export_weights",
       .use = kOption,
       .text = [](const Cell& c) { return BoolText(c.probe.export_weights); },
       .field = "export_weights",
       .value = ValueIn,
       .flag_form = FlagForm::kSwitch,
       .help = "Export the weights after the first step, load them with transformers and compare",
       .of_kind =
           [](const EngineKind& kind) { return kind.exports_weights || kind.trainer_exports; },
       .lacks = "has no transformers beside it to load what it exports",
       .for_control = [](Probe& p) { p.export_weights = false; },
       .aspects = {{"the export of weights", [](const Probe& p) { return p.export_weights; }}}},
      {.name = "resume_checkpoint",
       .use = kOption,
       .text = [](const Cell& c) { return BoolText(c.probe.resume_checkpoint); },
       .field = "resume_checkpoint",
       .value = ValueIn,
       .flag_form = FlagForm::kSwitch,
       .help = "Save a checkpoint after the first step, load it in a fresh engine (a trainer: in a "
               "fresh process) and compare the later steps bit by bit",
       .of_kind =
           [](const EngineKind& kind) { return kind.saves_checkpoints || !kind.trainer.empty(); },
       .lacks = "is a library alone and saves no checkpoints",
       .for_control = [](Probe& p) { p.resume_checkpoint = false; },
       .aspects = {{"saving and loading a checkpoint",
                    [](const Probe& p) { return p.resume_checkpoint; }}}},
      {.name = "checkpoint",
       .use = kOption,
       .text = [](const Cell& c) { return EscapedText(c.probe.checkpoint); },
       .field = "checkpoint",
       .value = WordIn,
       .flag_form = FlagForm::kValues,
       .help = "Form of the weights: single-fp32, sharded-bf16 (several files and an index), or "
               "mxfp4 (the same with experts in MXFP4: gpt_oss only)",
       .aspects = {{"a sharded bf16 checkpoint",
                    [](const Probe& p) { return p.checkpoint == "sharded-bf16"; }},
                   {"MXFP4 weights", [](const Probe& p) { return p.checkpoint == "mxfp4"; }}}},
      {.name = "rope_keys",
       .use = kOption,
       .text = [](const Cell& c) { return EscapedText(c.probe.rope_keys); },
       .field = "rope_keys",
       .value = WordIn,
       .flag_form = FlagForm::kValues,
       .help = "Rope keys of config.json: both, rope_theta (transformers 4) or rope_parameters "
               "(transformers 5)",
       .aspects = {{"RoPE keys of transformers 5 only",
                    [](const Probe& p) { return p.rope_keys == "rope_parameters"; }},
                   {"RoPE keys of transformers 4 only",
                    [](const Probe& p) { return p.rope_keys == "rope_theta"; }}}},
  };
}

// How it is trained.
std::vector<Dimension> OfTheTraining() {
  using enum DimensionUse;
  return {
      {.name = "temperature",
       .use = kOption,
       .text = [](const Cell& c) { return absl::StrCat(c.probe.temperature); },
       .field = "temperature",
       .value = ValueIn,
       .schema = R"({"exclusiveMinimum": 0})",
       .flag_form = FlagForm::kValues,
       .help = "Number that logits are divided by (default: 1)",
       .aspects = {{"a temperature other than 1",
                    [](const Probe& p) { return p.temperature != 1; }}}},
      {.name = "entropy",
       .use = kOption,
       .text = [](const Cell& c) { return BoolText(c.probe.entropy); },
       .field = "entropy",
       .value = ValueIn,
       .flag_form = FlagForm::kSwitch,
       .help = "Also compare the entropy of each token's distribution, in the forward that trains "
               "nothing",
       .aspects = {{"entropy", [](const Probe& p) { return p.entropy; }}}},
      {.name = "config",
       .use = kOption,
       .text = [](const Cell& c) { return ValuesText(c.probe.config); },
       .field = "config",
       .value = ValuesIn,
       .schema = R"({"type": "object", "additionalProperties": {"type": ["number", "boolean"]}})",
       .flag_form = FlagForm::kValues,
       .help = "NAME:VALUE+NAME:VALUE: numbers of config.json that differ from the model's, for "
               "example rms_norm_eps:1e-5. Weights and expected results are those of the changed "
               "model",
       .aspects = {{"other numbers in config.json",
                    [](const Probe& p) { return !p.config.empty(); }}}},
      {.name = "steps",
       .use = kDetail,
       .text = [](const Cell& c) { return absl::StrCat(c.probe.steps); },
       .field = "steps",
       .value = ValueIn,
       .is_axis = false,
       .flag_form = FlagForm::kValue,
       .help = "Optimizer steps"},
      {.name = "seed",
       .use = kDetail,
       .text = [](const Cell& c) { return absl::StrCat(c.probe.seed); },
       .field = "seed",
       .value = ValueIn,
       .flag_form = FlagForm::kValues,
       .help = "Seeds of weights and data"},
      {.name = "optimizer",
       .use = kOption,
       .text = OptimizerText,
       .field = "optimizer",
       .value = ValuesIn,
       .schema = R"({"properties": {
         "schedule": {"description": "How warmup_steps are counted; the engine kind's own unless told."},
         "decay": {"description": "How the learning rate falls after the warm-up; it stays constant unless told."},
         "total_steps": {"description": "Steps of the training that the decay is made for: at least the steps of the cell. Needed with decay."},
         "min_lr_factor": {"description": "What a decay leaves of the learning rate in the end; 0 unless told.",
           "minimum": 0, "exclusiveMaximum": 1}}})",
       .flag_form = FlagForm::kValues,
       .help = "NAME:VALUE+NAME:VALUE with the names learning_rate, beta1, beta2, epsilon, "
               "weight_decay, clip_norm, warmup_steps, decay (linear or cosine), total_steps (of "
               "the decay), min_lr_factor",
       .aspects = {{"a warm-up", [](const Probe& p) { return p.optimizer.warmup_steps > 0; }},
                   {"a decay of the learning rate",
                    [](const Probe& p) { return !p.optimizer.decay.empty(); }},
                   {"a clipping norm that does not always act",
                    [](const Probe& p) {
                      return p.optimizer.clip_norm != OptimizerSettings().clip_norm;
                    }},
                   {"other settings of AdamW", HasOtherAdamW}}},
      {.name = "options",
       .use = kDetail,
       .text = [](const Cell& c) { return ValuesText(c.probe.engine_options); },
       .field = "engine_options",
       .value = ValuesIn,
       .schema = R"({"type": "object"})",
       .help = "Values in the engine's configuration, by name",
       .for_control = [](Probe& p) { p.engine_options.clear(); },
       .aspects = {{"offloading",
                    [](const Probe& p) { return HasEngineOption(p, "param_offload", "true"); },
                    "param_offload"},
                   {"FSDP1",
                    [](const Probe& p) { return HasEngineOption(p, "strategy", "\"fsdp\""); },
                    "strategy", [](const EngineKind& kind) { return kind.chooses_fsdp; }}}},
      {.name = "repeat",
       .use = kDetail,
       .text = [](const Cell& c) { return absl::StrCat(c.repeat); }},
      {.name = "plant", .use = kDetail, .text = [](const Cell& c) { return ListText(c.plant); }},
  };
}

std::vector<Dimension> MakeDimensions() {
  std::vector<Dimension> all;
  for (std::vector<Dimension>& part :
       std::vector{OfThePairing(), OfTheWorkload(), OfFiles(), OfTheTraining()}) {
    for (Dimension& dimension : part) {
      dimension.default_text = dimension.text(Cell());
      all.push_back(std::move(dimension));
    }
  }
  return all;
}

}  // namespace

std::vector<std::string> Dimension::Texts(const Cell& cell) const {
  std::vector<std::string> texts = {text(cell)};
  if (asked) texts.push_back(asked(cell));
  if (names) {
    for (std::string& name : names(cell)) texts.push_back(std::move(name));
  }
  return texts;
}

std::string Dimension::Flag() const {
  return absl::StrCat("--", absl::StrReplaceAll(name, {{"_", "-"}}));
}

const std::vector<Dimension>& Dimensions() {
  static const auto& all = *new std::vector<Dimension>(MakeDimensions());
  return all;
}

const Dimension* FindDimension(absl::string_view name) {
  const auto it = std::find_if(Dimensions().begin(), Dimensions().end(),
                               [&](const Dimension& known) { return known.name == name; });
  return it == Dimensions().end() ? nullptr : &*it;
}

bool Dimension::Matches(const CellPattern& pattern, const Cell& cell) const {
  if (pattern.text().empty() && use != DimensionUse::kMain && IsDefault(cell)) return true;
  const std::vector<std::string> texts = Texts(cell);
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return pattern.Matches(text); });
}

absl::StatusOr<Probe> ProbeOfId(absl::string_view id) {
  Json json = ToJson(Probe());
  json.erase("ranks");  // they follow from the layout
  const EngineKind* kind = nullptr;
  for (absl::string_view part : absl::StrSplit(id, ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const Dimension* dimension = FindDimension(pair.first);
    if (dimension == nullptr)
      return absl::InvalidArgumentError(
          absl::StrCat("'", id, "' is not the id of a cell: unknown key '", pair.first, "'"));
    if (pair.first == "engine") kind = FindEngineKind(pair.second.substr(0, pair.second.find('@')));
    if (dimension->field == nullptr) continue;
    absl::StatusOr<Json> value = dimension->value(pair.second);
    if (!value.ok()) return WithContext(value.status(), absl::StrCat("the id ", id));
    json[dimension->field] = *std::move(value);
  }
  if (kind != nullptr) FillInFor(*kind, json);
  return ProbeFromJson(json, absl::StrCat("the id ", id));
}

Probe ProbeOfControl(Probe probe) {
  for (const Dimension& dimension : Dimensions()) {
    if (dimension.for_control != nullptr) dimension.for_control(probe);
  }
  return probe;
}

}  // namespace bkm
