// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/probe_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <thread>
#include <utility>

#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/json.h"
#include "harness/numerics/model_checkpoint.h"
#include "harness/numerics/safetensors.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

fs::path Cache(absl::string_view name) { return fs::path(testing::TempDir()) / std::string(name); }

size_t EntriesOf(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

// Changing these bytes makes every golden stale: raise kGeneratorVersion.
TEST(ProbeFolderTest, HasTheSameBytesOnEveryMachine) {
  const fs::path folder = *WriteProbeFolder(Probe(), Cache("bytes"));
  EXPECT_EQ(*Sha256OfFile(folder / "model" / "model.safetensors"),
            "30eb7309c30d94e1368f58ce54a149b18b44da434a6057b54bd5a1590182f7c0");
  EXPECT_EQ(*Sha256OfFile(folder / "batch.safetensors"),
            "3a3f67945edbabe35344f7bcd1b2d40b053e315a1ca7ad6b176996a0f240d286");
  EXPECT_EQ(*Sha256OfFile(folder / "places.safetensors"),
            "0bd17b30a97d6ad8c174d4e45a8205cb9b80ccebaf6f650b18df5c6a483b0c56");
  const Json config = *ReadJsonFile(folder / "model" / "config.json");
  EXPECT_EQ(config["architectures"], Json({"Qwen3ForCausalLM"}));
  EXPECT_EQ(config["rope_theta"], 1e6);
  EXPECT_EQ(config["rope_parameters"]["rope_theta"], 1e6);
  ASSERT_TRUE(RemoveTree(Cache("bytes")).ok());
}

TEST(ProbeFolderTest, IsWrittenOnceAndRepairedWhenDamaged) {
  Probe probe;
  probe.steps = 1;
  const fs::path folder = *WriteProbeFolder(probe, Cache("once"));
  const auto written = fs::last_write_time(folder / "probe.json");
  probe.attention = "varlen";  // not a number: the same folder
  EXPECT_EQ(*WriteProbeFolder(probe, Cache("once")), folder);
  EXPECT_EQ(fs::last_write_time(folder / "probe.json"), written);
  fs::resize_file(folder / "batch.safetensors", 100);
  EXPECT_EQ(*WriteProbeFolder(probe, Cache("once")), folder);
  EXPECT_EQ(ReadProbeFolder(folder)->steps.size(), 1);
  EXPECT_EQ(EntriesOf(folder.parent_path()), 1) << "temporary folders were left behind";
  probe.seed = 2;
  EXPECT_NE(*WriteProbeFolder(probe, Cache("once")), folder);
  ASSERT_TRUE(RemoveTree(Cache("once")).ok());
}

TEST(ProbeFolderTest, ConcurrentWritersAgree) {
  Probe probe;
  probe.steps = 1;
  std::vector<fs::path> folders(3);
  std::vector<std::thread> writers;
  for (fs::path& folder : folders) {
    writers.emplace_back([&] { folder = *WriteProbeFolder(probe, Cache("race")); });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_THAT(folders, ElementsAre(folders[0], folders[0], folders[0]));
  EXPECT_TRUE(ReadProbeFolder(folders[0]).ok());
  EXPECT_EQ(EntriesOf(folders[0].parent_path()), 1);
  ASSERT_TRUE(RemoveTree(Cache("race")).ok());
}

TEST(ProbeFolderTest, ReadsBackWhatWasAskedFor) {
  Probe probe;
  probe.steps = 2;
  probe.optimizer.weight_decay = 0.5;
  const fs::path path = *WriteProbeFolder(probe, Cache("read"));
  const ProbeFolder folder = *ReadProbeFolder(path);
  EXPECT_EQ(folder.probe, probe);
  ASSERT_EQ(folder.steps.size(), 2);
  EXPECT_THAT(folder.steps[1].document_lengths, ElementsAre(262, 1, 29));
  EXPECT_EQ(folder.reach.position, 37 + 74);
  EXPECT_EQ(folder.reaches.size(), 3);
  EXPECT_EQ(folder.reaches[0].position, 37 + 150);
  EXPECT_EQ(folder.places.size(), 90);
  ASSERT_TRUE(WriteFile(path / "probe.json", R"({"schema": 2})").ok());
  EXPECT_THAT(std::string(ReadProbeFolder(path).status().message()), HasSubstr("$.schema"));
  ASSERT_TRUE(RemoveTree(Cache("read")).ok());
}

TEST(ProbeFolderTest, WhatOnlyTorchtitanReadsLiesBesideTheModel) {
  Probe probe;
  probe.model = "gpt_oss";
  probe.steps = 1;
  const ProbeFolder folder = *ReadProbeFolder(*WriteProbeFolder(probe, Cache("extras")));
  const SafetensorsFile weights = *SafetensorsFile::Open(folder.model() / "model.safetensors");
  const SafetensorsFile extras = *SafetensorsFile::Open(ExtrasOf(folder.model()));
  EXPECT_EQ(extras.tensors().size(), 2 * 4);
  const std::string name = "model.layers.3.mlp.experts.down_proj";
  EXPECT_THAT((*weights.Find(name))->shape, ElementsAre(8, 2880, 256));
  EXPECT_THAT((*extras.Find(name + "_blocks"))->shape, ElementsAre(8, 256, 2880));
  const auto at = [&](const SafetensorsFile& file, const std::string& tensor, int64_t index) {
    return reinterpret_cast<const float*>((*file.Find(tensor))->bytes.data())[index];
  };
  EXPECT_EQ(at(weights, name, (7 * 2880 + 100) * 256 + 3),
            at(extras, name + "_blocks", (7 * 256 + 3) * 2880 + 100));
  EXPECT_FALSE(folder.places.contains(name + "_blocks"));
  fs::remove(ExtrasOf(folder.model()));
  EXPECT_EQ(*WriteProbeFolder(probe, Cache("extras")), folder.path);
  EXPECT_TRUE(fs::exists(ExtrasOf(folder.model())))
      << "an incomplete folder was taken for a whole one";
  ASSERT_TRUE(RemoveTree(Cache("extras")).ok());
}

TEST(ProbeFolderTest, ShardsHoldTheRoundedWeightsAndNothingLiesBesideThem) {
  Probe probe;
  probe.steps = 1;
  const ProbeFolder plain = *ReadProbeFolder(*WriteProbeFolder(probe, Cache("shards")));
  probe.checkpoint = "sharded-bf16";
  const ProbeFolder folder = *ReadProbeFolder(*WriteProbeFolder(probe, Cache("shards")));
  EXPECT_EQ(folder.probe, probe);
  const std::vector<SafetensorsFile> files = *OpenWeights(folder.model());
  ASSERT_EQ(files.size(), 3);
  const Json index = *ReadJsonFile(folder.model() / "model.safetensors.index.json");
  int64_t bytes = 0;
  size_t tensors = 0;
  for (const SafetensorsFile& file : files) {
    EXPECT_THAT(file.tensors(), testing::Not(testing::IsEmpty()));
    for (const auto& [name, view] : file.tensors()) {
      EXPECT_EQ(view.type, TensorType::kBF16) << name;
      EXPECT_EQ(index["weight_map"][name], file.path().filename().string());
      bytes += view.bytes.size();
      ++tensors;
    }
  }
  EXPECT_EQ(index["metadata"]["total_size"], bytes);
  EXPECT_EQ(index["weight_map"].size(), tensors);
  EXPECT_EQ(tensors, folder.places.size());
  EXPECT_EQ(EntriesOf(folder.model()), 4 + 3 + 1) << "JSON files, shards and the index";
  const std::string name = "model.layers.7.mlp.down_proj.weight";
  const std::vector<double> exact =
      *SafetensorsFile::Open(plain.model() / "model.safetensors")->Doubles(name);
  const std::vector<double> rounded = *(*FileWith(files, name))->Doubles(name);
  EXPECT_NE(rounded[0], exact[0]);
  EXPECT_NEAR(rounded[0], exact[0], std::abs(exact[0]) / 256);
  EXPECT_EQ((*ReadJsonFile(folder.model() / "config.json"))["torch_dtype"], "bfloat16");
  fs::remove(files.back().path());
  EXPECT_EQ(*WriteProbeFolder(probe, Cache("shards")), folder.path);
  EXPECT_TRUE(fs::exists(files.back().path())) << "an incomplete folder was taken for a whole one";
  ASSERT_TRUE(RemoveTree(Cache("shards")).ok());
}

TEST(ProbeFolderTest, ExpertsInMxfp4AreReadInTheModelsShape) {
  Probe probe;
  probe.model = "gpt_oss";
  probe.steps = 1;
  const fs::path cache = Cache("mxfp4");
  const ProbeFolder plain = *ReadProbeFolder(*WriteProbeFolder(probe, cache));
  probe.checkpoint = "mxfp4";
  const ProbeFolder folder = *ReadProbeFolder(*WriteProbeFolder(probe, cache));
  const std::vector<SafetensorsFile> files = *OpenWeights(folder.model());
  const std::string name = "model.layers.3.mlp.experts.down_proj";
  EXPECT_FALSE(FileWith(files, name).ok());
  EXPECT_THAT((*(*FileWith(files, name + "_blocks"))->Find(name + "_blocks"))->shape,
              ElementsAre(8, 256, 2880 / 32, 16));
  EXPECT_THAT((*(*FileWith(files, name + "_scales"))->Find(name + "_scales"))->shape,
              ElementsAre(8, 256, 2880 / 32));
  const StoredWeight exact = *ReadWeight(*OpenWeights(plain.model()), name);
  const StoredWeight rounded = *ReadWeight(files, name);
  EXPECT_THAT(rounded.shape, ElementsAre(8, 2880, 256));
  ASSERT_EQ(rounded.values.size(), exact.values.size());
  // Blocks go down a column: each element is within a quarter of its block's largest.
  for (int64_t begin = 0; begin < 2880; begin += 32) {
    const auto at = [&](const StoredWeight& weight, int64_t i) {
      return weight.values[(5 * 2880 + begin + i) * 256 + 7];
    };
    float largest = 0, error = 0;
    for (int64_t i = 0; i < 32; ++i) {
      largest = std::max(largest, std::abs(at(exact, i)));
      error = std::max(error, std::abs(at(exact, i) - at(rounded, i)));
    }
    EXPECT_LE(error, largest / 4);
    EXPECT_GT(error, 0);
  }
  std::set<std::string> weights;
  for (const auto& [weight, places] : folder.places) weights.insert(weight);
  EXPECT_EQ(WeightNames(files), weights);
  const Json config = *ReadJsonFile(folder.model() / "config.json");
  EXPECT_EQ(config["quantization_config"]["quant_method"], "mxfp4");
  EXPECT_FALSE((*ReadJsonFile(plain.model() / "config.json")).contains("quantization_config"));
  ASSERT_TRUE(RemoveTree(cache).ok());
}

TEST(ProbeFolderTest, DamagedMxfp4IsAnErrorWithThePath) {
  const fs::path path = fs::path(testing::TempDir()) / "damaged.safetensors";
  const auto read = [&](std::vector<int64_t> blocks, std::vector<int64_t> scales) {
    const auto bytes = [](const std::vector<int64_t>& shape) {
      int64_t size = 1;
      for (const int64_t n : shape) size *= n;
      return std::string(size, '\x7f');
    };
    EXPECT_TRUE(WriteSafetensors(path, {{"w_blocks", TensorType::kU8, blocks, bytes(blocks)},
                                        {"w_scales", TensorType::kU8, scales, bytes(scales)}})
                    .ok());
    std::vector<SafetensorsFile> files;
    files.push_back(*SafetensorsFile::Open(path));
    return ReadWeight(files, "w").status();
  };
  EXPECT_TRUE(read({2, 3, 16}, {2, 3}).ok());
  for (const auto& [blocks, scales] :
       std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>>{
           {{2, 3, 16}, {3, 2}}, {{2, 3, 8}, {2, 3}}, {{16}, {1}}}) {
    EXPECT_THAT(std::string(read(blocks, scales).message()),
                testing::AllOf(HasSubstr(path.string()), HasSubstr("'w_blocks'")));
  }
}

TEST(ProbeFolderTest, TheConfigurationHasTheAskedKeysAndNumbers) {
  Probe probe;
  probe.steps = 1;
  probe.rope_keys = "rope_parameters";
  probe.config = {{"rms_norm_eps", "1e-05"}, {"intermediate_size", "512"}};
  const fs::path folder = *WriteProbeFolder(probe, Cache("keys"));
  const Json config = *ReadJsonFile(folder / "model" / "config.json");
  EXPECT_FALSE(config.contains("rope_theta"));
  EXPECT_FALSE(config.contains("rope_scaling"));
  EXPECT_EQ(config["rope_parameters"]["rope_theta"], 1e6);
  EXPECT_EQ(config["rms_norm_eps"], 1e-5);
  EXPECT_EQ(config["intermediate_size"], 512);
  const SafetensorsFile weights = *SafetensorsFile::Open(folder / "model" / "model.safetensors");
  EXPECT_THAT((*weights.Find("model.layers.0.mlp.up_proj.weight"))->shape, ElementsAre(512, 256));
  probe.rope_keys = "rope_theta";
  const fs::path old = *WriteProbeFolder(probe, Cache("keys"));
  const Json old_config = *ReadJsonFile(old / "model" / "config.json");
  EXPECT_EQ(old_config["rope_theta"], 1e6);
  EXPECT_FALSE(old_config.contains("rope_parameters"));
  ASSERT_TRUE(RemoveTree(Cache("keys")).ok());
}

TEST(ProbeFolderTest, ShardsHaveTheBuffersInFp32) {
  Probe probe;
  probe.model = "deepseek_v3";
  probe.checkpoint = "sharded-bf16";
  probe.steps = 1;
  const ProbeFolder folder = *ReadProbeFolder(*WriteProbeFolder(probe, Cache("sharded-buffers")));
  const std::string name = "model.layers.1.mlp.gate.e_score_correction_bias";
  const std::vector<SafetensorsFile> files = *OpenWeights(folder.model());
  EXPECT_EQ((*(*FileWith(files, name))->Find(name))->type, TensorType::kF32);
  EXPECT_FALSE(fs::exists(ExtrasOf(folder.model())));
  EXPECT_FALSE(folder.places.contains(name));
  ASSERT_TRUE(RemoveTree(Cache("sharded-buffers")).ok());
}

TEST(ProbeFolderTest, BuffersAreNoWeights) {
  Probe probe;
  probe.model = "deepseek_v3";
  probe.steps = 1;
  const ProbeFolder folder = *ReadProbeFolder(*WriteProbeFolder(probe, Cache("buffers")));
  const std::string name = "model.layers.1.mlp.gate.e_score_correction_bias";
  const fs::path weights = folder.model() / "model.safetensors";
  EXPECT_EQ(SafetensorsFile::Open(weights)->Doubles(name)->size(), 8);
  EXPECT_FALSE(fs::exists(ExtrasOf(folder.model())));
  EXPECT_FALSE(folder.places.contains(name));
  ASSERT_TRUE(WriteSafetensors(weights, {}, {}).ok());
  ASSERT_EQ(*WriteProbeFolder(probe, Cache("buffers")), folder.path);
  EXPECT_TRUE(SafetensorsFile::Open(weights)->Has(name))
      << "a folder without its buffers was taken for a whole one";
  ASSERT_TRUE(RemoveTree(Cache("buffers")).ok());
}

TEST(ProbeFolderTest, AnUnknownModelIsRefusedBeforeAnythingIsWritten) {
  Probe probe;
  probe.model = "qwen4";
  EXPECT_EQ(WriteProbeFolder(probe, Cache("unknown")).status().message(),
            "unknown model 'qwen4': did you mean 'qwen3'?");
  EXPECT_FALSE(fs::exists(Cache("unknown")));
}

TEST(ProbeFolderTest, ADocumentThatTheModelCannotHoldIsRefused) {
  Probe probe;
  probe.documents = {{37, 4097}};
  EXPECT_EQ(WriteProbeFolder(probe, Cache("long")).status().message(),
            "a document of 4097 tokens: from 1 to 4096 are possible");
}

}  // namespace
}  // namespace bkm
