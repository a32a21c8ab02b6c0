// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/numerics/probe_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/json.h"
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
  const SafetensorsFile weights = *SafetensorsFile::Open(folder.weights());
  const SafetensorsFile extras = *SafetensorsFile::Open(folder.extras());
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
  fs::remove(folder.extras());
  EXPECT_EQ(*WriteProbeFolder(probe, Cache("extras")), folder.path);
  EXPECT_TRUE(fs::exists(folder.extras())) << "an incomplete folder was taken for a whole one";
  ASSERT_TRUE(RemoveTree(Cache("extras")).ok());
}

TEST(ProbeFolderTest, BuffersAreNoWeights) {
  Probe probe;
  probe.model = "deepseek_v3";
  probe.steps = 1;
  const ProbeFolder folder = *ReadProbeFolder(*WriteProbeFolder(probe, Cache("buffers")));
  const std::string name = "model.layers.1.mlp.gate.e_score_correction_bias";
  EXPECT_EQ(SafetensorsFile::Open(folder.extras())->Doubles(name)->size(), 8);
  EXPECT_FALSE(SafetensorsFile::Open(folder.weights())->Has(name));
  EXPECT_FALSE(folder.places.contains(name));
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
