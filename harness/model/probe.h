// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_MODEL_PROBE_H_
#define HARNESS_MODEL_PROBE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/base/fields.h"
#include "harness/base/json.h"
#include "harness/model/layout.h"

namespace bkm {

// Gradient clipping by total norm, then AdamW as in torch.optim.AdamW. The learning rate rises for
// `warmup_steps` steps and then stays constant, or decays. No value but `clip_norm` is a default of
// torch, verl, torchtitan or transformers: an engine that drops an option runs something else.
// Another clipping norm than 1 is asked by rows of matrices, because verl's TorchTitan engine
// ignores it.
struct OptimizerSettings {
  double learning_rate = 2e-4;
  double beta1 = 0.85;
  double beta2 = 0.97;
  double epsilon = 1e-4;  // large enough to show in an update
  double weight_decay = 0.03;
  double clip_norm = 1.0;
  int warmup_steps = 0;
  // The factor of step k (from 0) in a warm-up of w steps: "zero-based" is k / w (HF and verl's
  // FSDP engine: the first step has rate 0), "one-based" is (k + 1) / w (torchtitan). Empty without
  // a warm-up. A matrix that names no schedule gets the engine kind's.
  std::string schedule;
  // "linear" or "cosine": after the warm-up the rate falls from the full rate to `min_lr_factor` of
  // it at step `total_steps` (from 0), the first step after the training. Empty: it stays constant.
  std::string decay;
  int total_steps = 0;  // of the training; at least the probe's steps. 0 without a decay
  double min_lr_factor = 0;
  // "norms-and-biases": they do not decay, as in transformers' Trainer (get_decay_parameter_names).
  // A matrix that does not say gets the engine kind's.
  std::string undecayed;
  // The weight decay of a parameter, by its name in Hugging Face's files.
  double WeightDecayOf(absl::string_view parameter) const;
  bool operator==(const OptimizerSettings&) const = default;
};

// What an update of reinforcement learning clips. No value is a default of verl: one that an engine
// drops shows.
struct PpoSettings {
  // The policy's ratio, the probability of a token over the one that it was drawn with, is clipped
  // to [1 - clip_low, 1 + clip_high] (https://arxiv.org/abs/1707.06347), and of a token with a
  // negative advantage the loss at clip_dual times it (https://arxiv.org/abs/1912.09729).
  double clip_low = 0.15;
  double clip_high = 0.3;
  double clip_dual = 2.5;
  // A critic's value is clipped to this distance from the old value.
  double clip_value = 0.35;
  bool empty() const { return *this == PpoSettings(); }  // nothing else is asked for
  bool operator==(const PpoSettings&) const = default;
};

// The names that Probe::config may have.
const std::vector<std::string>& ConfigNumbers();

// The values of OptimizerSettings::schedule.
const std::vector<std::string>& WarmupSchedules();
// The values of OptimizerSettings::decay.
const std::vector<std::string>& DecayTypes();
// The learning rate of step `step`, counted from 0. After a warm-up of w of t steps the progress of
// a decay at step k is (k - w) / (t - w) in all engines: torchtitan's linear_warmup_stable_decay
// (components/lr_scheduler.py, which counts both from 1), verl's get_cosine_schedule_with_warmup
// (utils/torch_functional.py), transformers' get_polynomial_decay_schedule_with_warmup and
// get_cosine_with_min_lr_schedule_with_warmup (optimization.py).
double LearningRateAt(const OptimizerSettings& settings, int step);

// What a mask, a cache or a table that is kept from an earlier step gets wrong: each step has
// another number of documents with other lengths. Documents are longer than any model's sliding
// window (128), one of step 2 holds a whole block of 128 x 128 pairs and is longer than any of step
// 1, one has a single token, and step 3 has as many tokens as step 1.
std::vector<std::vector<int64_t>> DefaultDocuments();

// The training steps that a cell runs: model, batch, attention, precision, engine options,
// optimizer and device.
struct Probe {
  std::string model = "qwen3";
  // flex, varlen or sdpa; for HF eager, sdpa, flex_attention or flash_attention_2.
  std::string attention;
  std::string precision = "bf16";  // bf16 or fp32
  std::string device = "cpu";
  // How the ranks share the work. Results must not depend on it.
  Layout layout;
  int threads = 1;
  int steps = 3;
  uint64_t seed = 1;  // of weights and data
  // Tokens per document. Step k has layout k (modulo their number), rotated by one document each
  // time the layouts begin again.
  std::vector<std::vector<int64_t>> documents = DefaultDocuments();
  // Who makes batches and steps. "engine": a loop of bkm's own calls the engine. "trainer": the
  // engine's own trainer, started from its entry point on files (EngineKind::trainer). Then every
  // step has the same documents, the first layout's, as one epoch of a dataset of conversations.
  std::string drive = "engine";
  // The form of a trainer's data. "turns": conversations of one or two answers, some with a
  // system's turn. "marked": the same, and the template marks what is trained. "single": one
  // question and one answer; rows of max_length tokens that the trainer packs, whose labels were
  // shifted before, so without each document's last token. A matrix that does not say gets the
  // engine kind's.
  std::string data = "turns";
  // Tokenizer and chat template of a trainer's data. "words": a token a word, turns between <bos>
  // and <eos>. "chatml": byte-level BPE, the template of Qwen. "llama3": byte-level BPE with the
  // template of Llama 3, one begin token before the first turn.
  std::string chat_template = "words";
  // The rows that a trainer takes for a step, as it counts them (verl's data.train_batch_size, of
  // transformers the size per device times accumulation, torchtitan's training.global_batch_size).
  // Documents are dealt to them as it likes. 0: every step has all documents of the file.
  int64_t global_batch_size = 0;
  // The most tokens that a trainer keeps of a document (verl's data.max_length, torchtitan's
  // training.seq_len). 0: all.
  int64_t max_length = 0;
  // What it does with a longer one: "right" and "left": cuts off that side; "drop": leaves it out.
  // Empty without a max_length. A matrix that does not say gets the engine kind's.
  std::string truncation = "";
  // The documents that each step of an observed cell had (dealing.h), of a cell with a
  // global_batch_size. Nobody asks for it.
  std::vector<std::vector<int64_t>> dealt = {};
  // "lm": log-probs of a language model. "value": a critic, one value per token.
  std::string head = "lm";
  // What a step minimises. "sft": the cross entropy of what counts. "ppo": the clipped loss of a
  // policy, or of a critic, on a roll-out: its documents are those of a trainer, which each step
  // has all, each a prompt (up to what first counts) and an answer (PackedBatch::rollout).
  std::string objective = "sft";
  PpoSettings ppo;
  // How the model is told where documents are (input_form.h): "packed", "padded+left". Results must
  // not depend on it.
  std::string input = "packed";
  // Parts that each step's documents are cut into, in order. Gradients are accumulated and the loss
  // is normalized by the tokens of all parts. Results must not depend on it.
  int micro_batches = 1;
  // Dimensions that only the cell's Python reads (Dimension::adapter_default): name -> value as
  // JSON text, such as "true". What has its default is absent.
  std::map<std::string, std::string> adapter_options = {};
  // After the first step the parameters are exported under their Hugging Face names, as for an
  // inference engine; transformers loads them and computes the second step's log-probs.
  bool export_weights = false;
  // After the first step a checkpoint is saved. A fresh engine loads it and repeats the later
  // steps.
  bool resume_checkpoint = false;
  // The form of the model's weights. "single-fp32": one file. "sharded-bf16": the same weights
  // rounded to bf16, in several files with an index, as save_pretrained writes large models.
  // "mxfp4": the same, but the weights of experts are rounded to MXFP4, as gpt_oss is published.
  std::string checkpoint = "single-fp32";
  // Which rope keys config.json has. "rope_theta": also rope_scaling (the form of transformers 4).
  // "rope_parameters": that key only (the form of transformers 5). "both": all three.
  std::string rope_keys = "both";
  // Logits are divided by it before log-probs, entropy and loss are taken of them.
  double temperature = 1;
  // The forward that trains nothing also gives the entropy of each token's distribution.
  bool entropy = false;
  // Numbers of config.json that differ from the model's: name -> value as JSON text. Weights and
  // expected results are those of the changed model.
  std::map<std::string, std::string> config = {};
  std::map<std::string, std::string> engine_options = {};  // name -> value as JSON text
  OptimizerSettings optimizer;
  bool operator==(const Probe&) const = default;
};

// How many tokens a chat template puts around the content of a conversation.
struct ChatLengths {
  int64_t document;  // before the first turn
  int64_t turn;      // around each content
  int64_t trailing;  // of a turn's, those after its end token
};
ChatLengths ChatLengthsOf(const std::string& chat_template);

// The shortest conversation of a trainer's dataset (numerics/conversations.h), a question without
// words; the shortest of the form "single" has an answer, too, and its end is no input.
int64_t ShortestConversation(const Probe& probe);
// The shortest with an answer, whose end counts in the loss.
int64_t ShortestWithAnswer(const Probe& probe);

// The values of Probe::truncation.
const std::vector<std::string>& Truncations();

// The tokens of the documents of step `step`, counted from 0.
std::vector<int64_t> DocumentsOf(const Probe& probe, int step);

void Describe(Fields& fields, OptimizerSettings& settings);
void Describe(Fields& fields, PpoSettings& settings);
void Describe(Fields& fields, Probe& probe);
Json ToJson(const OptimizerSettings& optimizer);
Json ToJson(const Probe& probe);
// Strict: unknown keys and wrong types are errors that start with `origin`.
absl::StatusOr<Probe> ProbeFromJson(const Json& json, const std::string& origin);

// The fields that weights, data and golden depend on. Their hash names these in caches and in
// golden/numeric. A field that was added later is left out at its default, so that old names stay
// valid.
Json NumericsOf(const Probe& probe);

}  // namespace bkm

#endif  // HARNESS_MODEL_PROBE_H_
