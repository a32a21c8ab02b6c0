// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cli/selection.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "harness/base/did_you_mean.h"
#include "harness/base/status_macros.h"
#include "harness/model/engine_kind.h"
#include "harness/runner/installation.h"

namespace bkm {
namespace {

constexpr char kOrigin[] = "command line";
constexpr char kProductGroup[] = "Instead of a matrix file: every combination of these";

// Whether `spec` may be the library of `kind`: by name, or any folder.
bool IsLibraryOf(const EngineKind& kind, const std::string& spec) {
  const absl::StatusOr<SubjectSpec> parsed = ParseSubjectSpec(spec);
  // An invalid spec is kept: reading the matrix reports it.
  return !parsed.ok() || parsed->source == SourceKind::kPath || parsed->name == kind.library_source;
}

// `text` parsed as JSON; the text itself if it is not JSON.
Json ValueOf(const std::string& text) {
  const Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? Json(text) : value;
}

// The parts of `text` between commas that lie in no list, object or string of JSON.
std::vector<std::string> SplitOutsideJson(absl::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  bool in_string = false, is_escaped = false;
  for (const char c : text) {
    if (in_string) {
      in_string = is_escaped || c != '"';
      is_escaped = !is_escaped && c == '\\';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth <= 0) {
      parts.emplace_back();
      continue;
    }
    parts.back().push_back(c);
  }
  return parts;
}

// "NAME<separator>VALUE" of the flag `flag`.
absl::Status AddSetting(const char* flag, absl::string_view text, char separator, Json& settings) {
  const std::vector<std::string> pair = absl::StrSplit(text, absl::MaxSplits(separator, 1));
  if (pair.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": '", text, "' is not NAME", std::string(1, separator), "VALUE"));
  }
  settings[pair[0]] = ValueOf(pair[1]);
  return absl::OkStatus();
}

}  // namespace

void Selection::AddOptions(CLI::App& app) {
  app.add_option("matrix", matrix_path_,
                 "Matrix file, or the name of one that came with bkm: quickstart");
  const auto list = [&](const char* flags, std::vector<std::string>& into, const char* help) {
    app.add_option(flags, into, help)->delimiter(',')->group(kProductGroup);
  };
  list("--engine", engines_,
       "KIND@SPEC, or KIND alone for a control: verl-torchtitan@git:verl@v0.8.0, "
       "verl-fsdp@pypi:verl==0.9.1, torchtitan");
  list("--library", libraries_,
       "SPEC: pypi:torchtitan==0.3.0, git:torchtitan@baba6d82e, path:../my-torchtitan");
  list("--attention", attentions_,
       "flex, varlen, sdpa; for Hugging Face models: eager, sdpa, flex_attention, "
       "flash_attention_2");
  list("--model", models_, "Model, for example qwen3");
  list("--precision", precisions_, "bf16 or fp32 (default: that of the engine kind)");
  list("--runtime", runtimes_, "Name of a policy in matrices/runtimes (default: cpu)");
  list("--torch", torch_, "torch version (default: that of the runtime)");
  list("--relax", relax_,
       "Package whose declared version requirement is ignored when the runtime is resolved");
  list("--head", heads_, "lm (language model) or value (critic)");
  list("--input", inputs_, "packed, or padded (verl's use_remove_padding=False)");
  list("--checkpoint", checkpoints_,
       "Form of the weights: single-fp32, sharded-bf16 (several files and an index), or mxfp4 (the "
       "same with experts in MXFP4: gpt_oss only)");
  list("--rope-keys", rope_keys_,
       "Rope keys of config.json: both, rope_theta (transformers 4) or rope_parameters "
       "(transformers 5)");
  list("--config", configs_,
       "NAME:VALUE+NAME:VALUE: numbers of config.json that differ from the model's, for example "
       "rms_norm_eps:1e-5");
  list("--optimizer", optimizers_,
       "NAME:VALUE+NAME:VALUE with the names learning_rate, beta1, beta2, epsilon, weight_decay, "
       "clip_norm, warmup_steps, decay (linear or cosine), total_steps (of the decay), "
       "min_lr_factor");
  list("--temperature", temperatures_, "Number that logits are divided by (default: 1)");
  app.add_flag("--entropy", entropy_,
               "Also compare the entropy of each token's distribution, in the forward that trains "
               "nothing")
      ->group(kProductGroup);
  app.add_option("--micro-batches", micro_batches_, "Number of micro-batches per step")
      ->delimiter(',')
      ->group(kProductGroup);
  app.add_option("--documents", documents_,
                 "Tokens of each packed document, for example 37+150+64; 37+150/64+20 for the "
                 "documents of two steps")
      ->group(kProductGroup);
  list("--layout", layouts_,
       "How the ranks of a cell share the work, for example dp_shard=2 or dp_replicate=2+tp=2 "
       "(dp_replicate, dp_shard, tp, cp, pp, ep, ulysses; default: one rank)");
  app.add_flag("--leftover-checkpoint", leftover_checkpoint_,
               "Create an empty ./outputs/checkpoint in the cell's folder before it runs")
      ->group(kProductGroup);
  app.add_flag("--export-weights", export_weights_,
               "Export the weights after the first step, load them with transformers and compare")
      ->group(kProductGroup);
  app.add_flag("--resume-checkpoint", resume_checkpoint_,
               "Save a checkpoint after the first step, load it in a fresh engine and compare the "
               "later steps bit by bit")
      ->group(kProductGroup);
  app.add_option("--engine-option", engine_options_,
                 "NAME=JSON: a value in the engine's configuration, for example "
                 "param_offload=true or 'target_modules=[\"q_proj\",\"v_proj\"]'")
      ->group(kProductGroup);
  app.add_option("--steps", steps_, "Optimizer steps")->group(kProductGroup);
  app.add_option("--seed", seeds_, "Seeds of weights and data")
      ->delimiter(',')
      ->check(CLI::NonNegativeNumber)
      ->group(kProductGroup);
  app.add_option("--filter", filters_,
                 "Only cells that match every key=glob, for example engine=v0.8.0,attention=f*; "
                 "repeat the option to add alternatives");
  app.add_option("--git-mirror", git_mirror_, kGitMirrorHelp);
  app.add_option("--timeout", timeout_s_, "Time limit of a cell, in seconds");
  app.add_option("--memory", memory_mib_, "Memory limit of a cell, in MiB");
}

std::filesystem::path Selection::MatrixPath() const {
  std::error_code error;
  if (std::filesystem::exists(matrix_path_, error) ||
      matrix_path_.find_first_of("/.") != std::string::npos)
    return matrix_path_;
  const absl::StatusOr<Installation> installation = Installation::Find();
  if (!installation.ok()) return matrix_path_;
  const std::filesystem::path ours = installation->matrices() / (matrix_path_ + ".json");
  return std::filesystem::exists(ours, error) ? ours : std::filesystem::path(matrix_path_);
}

std::filesystem::path Selection::MatrixFile() const {
  return matrix_path_.empty() ? std::filesystem::path() : std::filesystem::absolute(MatrixPath());
}

std::string GitMirrorFolder(const std::string& asked) {
  if (!asked.empty()) return asked;
  const char* mirrors = std::getenv("BKM_GIT_MIRRORS");
  return mirrors ? mirrors : "";
}

std::string Selection::GitMirrors() const { return GitMirrorFolder(git_mirror_); }

absl::StatusOr<Json> Selection::AdHocGroup(const std::string& engine) const {
  const std::vector<std::string> parts = absl::StrSplit(engine, absl::MaxSplits('@', 1));
  const EngineKind* kind = FindEngineKind(parts[0]);
  if (!kind)
    return absl::InvalidArgumentError(absl::StrCat("--engine: unknown kind '", parts[0], "'",
                                                   DidYouMean(parts[0], EngineKindNames())));
  Json group = {{"engine", {{"kind", kind->name}, {"subjects", Json::array()}}},
                {"probe", Json::object()}};
  if (parts.size() == 2) group["engine"]["subjects"].push_back(parts[1]);
  group["library"] = Json::array();
  for (const std::string& library : libraries_) {
    if (IsLibraryOf(*kind, library)) group["library"].push_back(library);
  }
  ASSIGN_OR_RETURN(group["probe"], AdHocProbe());
  if (!runtimes_.empty()) group["runtime"] = runtimes_;
  if (!torch_.empty()) group["torch"] = torch_;
  if (!relax_.empty()) group["relax"] = relax_;
  return group;
}

absl::StatusOr<Json> Selection::AdHocProbe() const {
  Json probe = Json::object();
  if (!attentions_.empty()) probe["attention"] = attentions_;
  if (!models_.empty()) probe["model"] = models_;
  if (!precisions_.empty()) probe["precision"] = precisions_;
  if (steps_ > 0) probe["steps"] = steps_;
  if (!seeds_.empty()) probe["seed"] = seeds_;
  if (!heads_.empty()) probe["head"] = heads_;
  if (!inputs_.empty()) probe["input"] = inputs_;
  if (!micro_batches_.empty()) probe["micro_batches"] = micro_batches_;
  if (!layouts_.empty()) probe["layout"] = layouts_;
  if (leftover_checkpoint_) probe["leftover_checkpoint"] = true;
  if (export_weights_) probe["export_weights"] = true;
  if (resume_checkpoint_) probe["resume_checkpoint"] = true;
  if (!checkpoints_.empty()) probe["checkpoint"] = checkpoints_;
  if (!rope_keys_.empty()) probe["rope_keys"] = rope_keys_;
  for (const std::string& temperature : temperatures_)
    probe["temperature"].push_back(ValueOf(temperature));
  if (entropy_) probe["entropy"] = true;
  for (const std::string& config : configs_) {
    Json numbers = Json::object();
    for (absl::string_view number : absl::StrSplit(config, '+'))
      RETURN_IF_ERROR(AddSetting("--config", number, ':', numbers));
    probe["config"].push_back(std::move(numbers));
  }
  if (!documents_.empty()) {
    for (const absl::string_view layout : absl::StrSplit(documents_, '/')) {
      Json lengths = Json::array();
      for (const absl::string_view length : absl::StrSplit(layout, '+'))
        lengths.push_back(ValueOf(std::string(length)));
      probe["documents"].push_back(std::move(lengths));
    }
  }
  for (const std::string& optimizer : optimizers_) {
    Json settings = Json::object();
    for (absl::string_view setting : absl::StrSplit(optimizer, '+'))
      RETURN_IF_ERROR(AddSetting("--optimizer", setting, ':', settings));
    probe["optimizer"].push_back(std::move(settings));
  }
  Json options = Json::object();
  for (const std::string& list : engine_options_) {
    for (const std::string& option : SplitOutsideJson(list))
      RETURN_IF_ERROR(AddSetting("--engine-option", option, '=', options));
  }
  probe["engine_options"] = Json::array({options});
  return probe;
}

absl::StatusOr<Matrix> Selection::AdHoc() const {
  Json json = {{"schema", 1}, {"name", "ad-hoc"}, {"groups", Json::array()}};
  for (const std::string& engine : engines_) {
    ASSIGN_OR_RETURN(Json group, AdHocGroup(engine));
    json["groups"].push_back(std::move(group));
  }
  return MatrixFromJson(json, kOrigin);
}

absl::StatusOr<Matrix> Selection::LoadMatrix() const {
  if (matrix_path_.empty() == engines_.empty()) {
    return absl::InvalidArgumentError(
        "name a matrix file (bkm run matrices/quickstart.json) or select cells by options (bkm run "
        "--engine verl-torchtitan@git:verl@v0.8.0 --library git:torchtitan@baba6d82e --attention "
        "flex), not "
        "both");
  }
  ASSIGN_OR_RETURN(Matrix matrix, matrix_path_.empty() ? AdHoc() : ReadMatrix(MatrixPath()));
  if (timeout_s_ > 0) matrix.limits.timeout_s = timeout_s_;
  if (memory_mib_ > 0) matrix.limits.memory_mib = memory_mib_;
  return matrix;
}

absl::StatusOr<std::vector<CellFilter>> Selection::Filters() const {
  std::vector<CellFilter> filters;
  for (const std::string& text : filters_) {
    ASSIGN_OR_RETURN(CellFilter filter, CellFilter::Parse(text));
    filters.push_back(std::move(filter));
  }
  return filters;
}

}  // namespace bkm
