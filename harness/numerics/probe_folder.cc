// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/probe_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/numerics/conversations.h"
#include "harness/numerics/hf_config.h"
#include "harness/numerics/hf_tokenizer.h"
#include "harness/numerics/model_checkpoint.h"
#include "harness/numerics/model_shapes.h"
#include "harness/numerics/model_weights.h"
#include "harness/numerics/probe_data.h"
#include "harness/numerics/safetensors.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr int kSchema = 1;
// Raise it if the files of the model beside its weights change (config.json, the tokenizer).
constexpr int kModelFiles = 2;
// The same for the tokenizer and the conversations of probes with a trainer.
constexpr int kTrainerFiles = 3;
constexpr const char* kJsonFiles[] = {"model/config.json", "model/generation_config.json",
                                      "model/tokenizer.json", "model/tokenizer_config.json"};
constexpr char kConversations[] = "conversations.jsonl";  // of probes with a trainer
constexpr const char* kTensorFiles[] = {"batch.safetensors", "places.safetensors"};

std::string FolderName(const Probe& probe) {
  Json key = {{"generator", kGeneratorVersion},
              {"model_files", kModelFiles},
              {"numerics", NumericsOf(probe)}};
  if (probe.drive == "trainer") key["trainer_files"] = kTrainerFiles;
  return Sha256(ToLine(key)).substr(0, 32);
}

// Where the tensors of a batch are in batch.safetensors.
std::string StepKey(int step) { return absl::StrCat("step", step, "/"); }
constexpr char kKept[] = "kept/";

std::string ProbeJson(const Probe& probe, const ModelShape& shape) {
  const PackedBatch batch = DrawBatch(probe, shape, 0);
  const ReachTest reach = DrawReachTest(batch, shape, probe.seed);
  Json reaches = Json::array();
  for (const TokenChange& change : DrawReaches(batch, shape, probe.seed)) {
    reaches.push_back({{"position", change.position}, {"token", change.token}});
  }
  return ToText(Json{{"schema", kSchema},
                     {"numerics", NumericsOf(probe)},
                     {"eos_token_id", kEosToken},
                     {"reach",
                      {{"step", reach.step},
                       {"document", reach.document},
                       {"position", reach.position},
                       {"token", reach.token}}},
                     {"reaches", reaches}});
}

std::string ConversationsFileOf(const Probe& probe, const ModelShape& shape) {
  return JsonLines(DrawConversations(probe, shape),
                   *ChatFormOf(probe.chat_template, shape.vocabulary));
}

absl::Status WriteModel(const Probe& probe, const ModelShape& shape, const fs::path& folder) {
  const char* type = probe.checkpoint == "single-fp32" ? "float32" : "bfloat16";
  OrderedJson config = HfConfig(shape, probe.rope_keys, type);
  if (probe.checkpoint == "mxfp4") {  // as in the config.json of openai/gpt-oss-20b
    config["quantization_config"] = {{"modules_to_not_convert",
                                      {"model.layers.*.self_attn", "model.layers.*.mlp.router",
                                       "model.embed_tokens", "lm_head"}},
                                     {"quant_method", "mxfp4"}};
  }
  RETURN_IF_ERROR(WriteFile(folder / "config.json", ToText(config)));
  const OrderedJson generation = {
      {"bos_token_id", 1}, {"do_sample", false}, {"eos_token_id", kEosToken}};
  RETURN_IF_ERROR(WriteFile(folder / "generation_config.json", ToText(generation)));
  OrderedJson tokenizer = HfTokenizer(NumberedWords(shape.vocabulary)),
              tokenizer_config = HfTokenizerConfig();
  if (probe.drive == "trainer") {
    const auto form = ChatFormOf(probe.chat_template, shape.vocabulary);
    tokenizer = form->TokenizerJson();
    tokenizer_config = form->TokenizerConfig();
    tokenizer_config["chat_template"] = form->Template(probe.data == "marked");
    // As published tokenizers of language models say: else there are token_type_ids.
    tokenizer_config["model_input_names"] = {"input_ids", "attention_mask"};
  }
  RETURN_IF_ERROR(WriteFile(folder / "tokenizer.json", ToText(tokenizer)));
  RETURN_IF_ERROR(WriteFile(folder / "tokenizer_config.json", ToText(tokenizer_config)));
  return WriteCheckpoint(probe, shape, folder);
}

absl::Status WriteBatches(const Probe& probe, const ModelShape& shape, const fs::path& path) {
  std::vector<NamedTensor> tensors;
  const auto add = [&](const std::string& key, const PackedBatch& batch) {
    for (const auto& [name, values] :
         {std::pair("input_ids", &batch.input_ids), std::pair("loss_mask", &batch.loss_mask),
          std::pair("document_lengths", &batch.document_lengths),
          std::pair("after", &batch.after)}) {
      if (values == &batch.after && values->empty()) continue;
      tensors.push_back(
          NamedTensor::I64(key + name, {static_cast<int64_t>(values->size())}, *values));
    }
    for (const auto& [name, values] :
         {std::pair("old", &batch.rollout.old), std::pair("credit", &batch.rollout.credit)}) {
      if (values->empty()) continue;
      tensors.push_back(
          NamedTensor::F32(key + name, {static_cast<int64_t>(values->size())}, *values));
    }
  };
  for (int step = 0; step < probe.steps; ++step) add(StepKey(step), DrawBatch(probe, shape, step));
  if (probe.drive == "trainer") add(kKept, KeptBatch(DrawConversations(probe, shape), probe));
  return WriteSafetensors(path, std::move(tensors));
}

absl::Status WritePlaces(const Probe& probe, const ModelShape& shape, const fs::path& path) {
  std::vector<NamedTensor> tensors;
  for (const WeightShape& weight : WeightsOf(shape)) {
    const std::vector<int64_t> places = DrawPlaces(weight, probe.seed);
    tensors.push_back(NamedTensor::I64(weight.name, {static_cast<int64_t>(places.size())}, places));
  }
  return WriteSafetensors(path, std::move(tensors));
}

// The model of a probe whose steps were dealt is that of the probe before, whose folder is beside.
absl::Status LinkModel(const fs::path& from, const fs::path& to) {
  RETURN_IF_ERROR(CreateDirectories(to));
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(from, error)) {
    fs::create_hard_link(file.path(), to / file.path().filename(), error);
    if (error) break;
  }
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot link ", from.string(), " to ", to.string(), ": ", error.message()));
}

absl::Status WriteAll(const Probe& probe, const ModelShape& shape, const fs::path& folder) {
  Probe before = probe;
  before.dealt.clear();
  const fs::path model_before = folder.parent_path() / FolderName(before) / "model";
  if (!probe.dealt.empty() && IsCheckpointComplete(before, shape, model_before)) {
    RETURN_IF_ERROR(LinkModel(model_before, folder / "model"));
  } else {
    RETURN_IF_ERROR(WriteModel(probe, shape, folder / "model"));
  }
  RETURN_IF_ERROR(WriteBatches(probe, shape, folder / "batch.safetensors"));
  RETURN_IF_ERROR(WritePlaces(probe, shape, folder / "places.safetensors"));
  if (probe.drive == "trainer")
    RETURN_IF_ERROR(WriteFile(folder / kConversations, ConversationsFileOf(probe, shape)));
  return WriteFile(folder / "probe.json", ProbeJson(probe, shape));
}

// Whether every file is there and none is truncated.
bool IsComplete(const fs::path& folder, const Probe& probe, const ModelShape& shape,
                const std::string& probe_json) {
  const absl::StatusOr<std::string> found = ReadFile(folder / "probe.json");
  if (!found.ok() || *found != probe_json) return false;
  for (const char* name : kJsonFiles) {
    if (!ReadJsonFile(folder / name).ok()) return false;
  }
  if (probe.drive == "trainer") {
    const absl::StatusOr<std::string> written = ReadFile(folder / kConversations);
    if (!written.ok() || *written != ConversationsFileOf(probe, shape)) return false;
  }
  for (const char* name : kTensorFiles) {
    if (!SafetensorsFile::Open(folder / name).ok()) return false;
  }
  return IsCheckpointComplete(probe, shape, folder / "model");
}

// Moves the finished `temporary` into place, unless another writer was faster.
absl::Status Publish(const fs::path& temporary, const fs::path& folder, const Probe& probe,
                     const ModelShape& shape, const std::string& probe_json) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    if (::rename(temporary.c_str(), folder.c_str()) == 0) return absl::OkStatus();
    if (errno != ENOTEMPTY && errno != EEXIST) {
      return absl::UnavailableError(
          absl::StrCat("cannot create ", folder.string(), ": ", std::strerror(errno)));
    }
    if (IsComplete(folder, probe, shape, probe_json)) return RemoveTree(temporary);
    // A damaged folder is moved away first, so that no reader sees a mixture.
    const fs::path aside = temporary.string() + ".old";
    ::rename(folder.c_str(), aside.c_str());
    RETURN_IF_ERROR(RemoveTree(aside));
  }
  return absl::UnavailableError(
      absl::StrCat("cannot create ", folder.string(), ": other processes keep replacing it"));
}

absl::StatusOr<ReachTest> ReadReach(const Json& json, const std::string& origin,
                                    const std::string& path,
                                    const std::vector<PackedBatch>& steps) {
  ObjectReader reader(json, origin, path);
  ReachTest reach;
  reach.step = reader.Int("step", 0, 0, static_cast<int64_t>(steps.size()) - 1);
  const PackedBatch& batch = steps[reach.step];
  const auto last = [](const std::vector<int64_t>& v) {
    return static_cast<int64_t>(v.size()) - 1;
  };
  reach.document = reader.Int("document", 0, 0, last(batch.document_lengths));
  reach.position = reader.Int("position", 0, 0, last(batch.input_ids));
  reach.token = reader.Int("token", 0, 0, INT64_MAX);
  RETURN_IF_ERROR(reader.Finish());
  return reach;
}

absl::StatusOr<std::vector<TokenChange>> ReadReaches(const Json& json, const std::string& origin,
                                                     const PackedBatch& batch) {
  std::vector<TokenChange> reaches;
  for (size_t i = 0; i < json.size(); ++i) {
    ObjectReader reader(json[i], origin, absl::StrCat("$.reaches[", i, "]"));
    const int64_t last = static_cast<int64_t>(batch.input_ids.size()) - 1;
    reaches.push_back({reader.Int("position", 0, 0, last), reader.Int("token", 0, 0, INT64_MAX)});
    RETURN_IF_ERROR(reader.Finish());
  }
  return reaches;
}

absl::StatusOr<PackedBatch> ReadBatch(const SafetensorsFile& file, const std::string& key) {
  PackedBatch batch;
  ASSIGN_OR_RETURN(batch.input_ids, file.Ints(key + "input_ids"));
  ASSIGN_OR_RETURN(batch.loss_mask, file.Ints(key + "loss_mask"));
  ASSIGN_OR_RETURN(batch.document_lengths, file.Ints(key + "document_lengths"));
  if (file.Has(key + "after")) {
    ASSIGN_OR_RETURN(batch.after, file.Ints(key + "after"));
    if (batch.after.size() != batch.document_lengths.size())
      return absl::InvalidArgumentError(absl::StrCat(key, ": ", batch.after.size(),
                                                     " labels after ",
                                                     batch.document_lengths.size(), " documents"));
  }
  size_t total = 0;
  for (const int64_t length : batch.document_lengths) total += length;
  for (const auto& [name, values] :
       {std::pair("old", &batch.rollout.old), std::pair("credit", &batch.rollout.credit)}) {
    if (!file.Has(key + name)) continue;
    ASSIGN_OR_RETURN(const std::vector<double> read, file.Doubles(key + name));
    values->assign(read.begin(), read.end());
    if (values->size() != total)
      return absl::InvalidArgumentError(absl::StrCat(key, ": '", name, "' has ", values->size(),
                                                     " values for ", total, " tokens"));
  }
  if (batch.input_ids.empty() || batch.input_ids.size() != total ||
      batch.loss_mask.size() != total) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, ": ", batch.input_ids.size(), " tokens, ", batch.loss_mask.size(),
                     " loss mask entries and documents of ", total, " tokens together do not fit"));
  }
  return batch;
}

}  // namespace

absl::StatusOr<fs::path> WriteProbeFolder(const Probe& probe, const fs::path& cache_root) {
  ASSIGN_OR_RETURN(const ModelShape shape, ShapeOf(probe));
  for (const std::vector<int64_t>& layout : probe.documents) {
    for (const int64_t length : layout) {
      if (length < 1 || length > kMaxPositions) {
        return absl::InvalidArgumentError(absl::StrCat(
            "a document of ", length, " tokens: from 1 to ", kMaxPositions, " are possible"));
      }
    }
  }
  const fs::path parent = fs::absolute(cache_root) / "probes";
  const fs::path folder = parent / FolderName(probe);
  const std::string probe_json = ProbeJson(probe, shape);
  if (IsComplete(folder, probe, shape, probe_json)) return folder;
  ASSIGN_OR_RETURN(const fs::path temporary, CreateTempDirectory(parent, ".new-"));
  ::chmod(temporary.c_str(), 0755);
  absl::Status status = WriteAll(probe, shape, temporary);
  if (status.ok()) status = Publish(temporary, folder, probe, shape, probe_json);
  if (status.ok()) return folder;
  RemoveTree(temporary).IgnoreError();  // report the first error
  return WithContext(status, "probe folder");
}

absl::StatusOr<ProbeFolder> ReadProbeFolder(const fs::path& path) {
  ProbeFolder folder;
  folder.path = fs::absolute(path);
  const fs::path json_path = folder.path / "probe.json";
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(json_path));
  ObjectReader reader(json, json_path.string());
  reader.Int("schema", 0, kSchema, kSchema);
  reader.Int("eos_token_id", kEosToken, kEosToken, kEosToken);
  const Json* numerics = reader.Child("numerics");
  const Json* reach = reader.Child("reach");
  const Json* reaches = reader.Child("reaches");
  RETURN_IF_ERROR(reader.Finish());
  if (!reader.Has("schema") || !numerics || !reach || !reaches || !reaches->is_array()) {
    return absl::InvalidArgumentError(absl::StrCat(
        json_path.string(), ": 'schema', 'numerics', 'reach' and a list 'reaches' are needed"));
  }
  ASSIGN_OR_RETURN(folder.probe,
                   ProbeFromJson(*numerics, absl::StrCat(json_path.string(), ": numerics")));
  const fs::path batches_path = folder.path / "batch.safetensors";
  ASSIGN_OR_RETURN(const SafetensorsFile batches, SafetensorsFile::Open(batches_path));
  for (int step = 0; step < folder.probe.steps; ++step) {
    absl::StatusOr<PackedBatch> batch = ReadBatch(batches, StepKey(step));
    if (!batch.ok()) return WithContext(batch.status(), batches_path.string());
    folder.steps.push_back(*std::move(batch));
  }
  if (batches.Has(absl::StrCat(kKept, "input_ids"))) {
    absl::StatusOr<PackedBatch> batch = ReadBatch(batches, kKept);
    if (!batch.ok()) return WithContext(batch.status(), batches_path.string());
    folder.kept = *std::move(batch);
  }
  ASSIGN_OR_RETURN(folder.reach, ReadReach(*reach, json_path.string(), "$.reach", folder.steps));
  ASSIGN_OR_RETURN(folder.reaches, ReadReaches(*reaches, json_path.string(), folder.steps.front()));
  ASSIGN_OR_RETURN(const SafetensorsFile places,
                   SafetensorsFile::Open(folder.path / "places.safetensors"));
  for (const auto& [name, view] : places.tensors()) {
    ASSIGN_OR_RETURN(folder.places[name], places.Ints(name));
  }
  return folder;
}

}  // namespace bkm
