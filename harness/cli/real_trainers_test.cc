// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Cells of matrices/trainers.json: engines driven by their own trainers, from data files to the
// numbers of each step. MoreRealTrainersTest runs the whole matrix. Needs the mirrors
// ($BKM_GIT_MIRRORS) and the package registry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/json_facts.h"
#include "harness/base/subprocess.h"
#include "harness/testing/real_run.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Fields = RealRun::Fields;

constexpr char kTrainersMatrix[] = "matrices/trainers.json";

class RealTrainersTest : public SharedRunTest<RealTrainersTest> {
 public:
  static absl::StatusOr<RealRun> MakeRun() {
    return RealRun::Make(
        Filtered(
            {kTrainersMatrix, "--no-controls"},
            {"engine=verl-fsdp@pypi:verl==0.9.1,runtime=cpu-serving,model=qwen3,"
             "precision=bf16,micro_batches=1,global_batch_size=0,layout=1,chat_template=words",
             "engine=verl-fsdp@pypi:verl==0.9.1,chat_template=chatml",
             "engine=transformers-trainer,library=5.10.2,chat_template=llama3",
             "engine=verl-fsdp@pypi:verl==0.9.1,layout=dp_shard=2",
             "engine=verl-fsdp@pypi:verl==0.9.1,truncation=left",
             "engine=transformers-trainer,library=5.10.2,input=padded,global_batch_size=4",
             "engine=torchtitan,library=baba6d82e,global_batch_size=2,micro_batches=2",
             "engine=verl-fsdp@pypi:verl==0.9.1,runtime=cpu,model=qwen3",
             "engine=verl-fsdp@pypi:verl==0.9.1,objective=ppo,precision=fp32,micro_batches=2"}),
        "trainers");
  }
};

Fields CellOfVerl(const char* truncation) {
  return {{"runtime", "cpu-serving"}, {"model", "qwen3"},
          {"engine", "verl-fsdp"},    {"layout", ""},
          {"chat_template", ""},      {"truncation", truncation}};
}

TEST_F(RealTrainersTest, VerlsTrainerTrainsWhatItsDataFileSays) {
  const Fields cell = CellOfVerl("");
  EXPECT_EQ(run().VerdictOf(cell), "ok at golden") << run().Cell(cell);
  const Json verdict = run().FileOf(cell, "verdict.json");
  const Json data = ObjectOf(ObjectOf(ObjectOf(verdict, "evidence"), "checks"), "data");
  EXPECT_EQ(data, (Json{{"outcome", "passed"}, {"steps", 3}, {"labels", 336}}));
}

// Its MultiTurnSFTDataset cuts off the end of a document that has no padding, whatever it is asked.
TEST_F(RealTrainersTest, VerlsTrainerCutsOffTheOtherSideThanItIsAsked) {
  const Fields cell = CellOfVerl("left");
  EXPECT_EQ(run().ReasonOf(cell), "wrong at forward, documents-off");
  EXPECT_THAT(TextOf(run().Cell(cell), "message"), HasSubstr("it lost the last "));
}

TEST_F(RealTrainersTest, VerlsTrainerAsksForAPackageThatVerlDoesNotDeclare) {
  const Fields cell = {{"runtime", "cpu"}, {"model", "qwen3"}, {"engine", "verl-fsdp"}};
  EXPECT_EQ(run().ReasonOf(cell), "broken at import, module-missing");
  EXPECT_THAT(TextOf(run().Cell(cell), "message"), HasSubstr("uvicorn"));
}

// They are dealt to them, and dealt on after a restart.
TEST_F(RealTrainersTest, VerlsTrainerDealsDocumentsToTwoRanks) {
  const Fields cell = {{"engine", "verl-fsdp"}, {"layout", "dp_shard=2"}};
  EXPECT_EQ(run().VerdictOf(cell), "ok at golden") << run().Cell(cell);
}

// The library's tokenizer and template make of unicode, merges and special tokens what was drawn.
TEST_F(RealTrainersTest, ByteLevelTokenizersMakeWhatTheirFamiliesPublish) {
  for (const char* form : {"chatml", "llama3"}) {
    const Fields cell = {{"chat_template", form}};
    EXPECT_EQ(run().VerdictOf(cell), "ok at golden") << run().Cell(cell);
  }
}

const Fields& RestartedTransformers() {
  static const auto& cell =
      *new Fields{{"engine", "transformers-trainer"}, {"chat_template", ""}, {"layout", ""}};
  return cell;
}

TEST_F(RealTrainersTest, TransformersTrainerDealsEpochsAndGoesOnFromItsCheckpointAndWritesAFolder) {
  const Fields& cell = RestartedTransformers();
  EXPECT_EQ(run().VerdictOf(cell), "ok at golden") << run().Cell(cell);
}

// Of rows that are filled up, and without the document that is longer than a row.
TEST_F(RealTrainersTest, TorchtitansTrainerTrainsTheLabelsOfItsRows) {
  const Fields cell = {{"engine", "torchtitan"}};
  EXPECT_EQ(run().VerdictOf(cell), "ok at golden") << run().Cell(cell);
}

TEST_F(RealTrainersTest, WhatATrainerDoesByItselfIsNamed) {
  const auto named = [](const Fields& cell) {
    return ListOf(ObjectOf(run().FileOf(cell, "observation.json"), "adapter"), "by_itself");
  };
  EXPECT_EQ(named({{"engine", "torchtitan"}})[0], "the loss computes logits in 8 chunks");
  EXPECT_EQ(named(CellOfVerl("")), Json::array({"the backward computes activations again"}));
  EXPECT_EQ(named(RestartedTransformers()), Json::array());
}

// The parameters after the last step, bit by bit, with all witnesses and with none.
TEST_F(RealTrainersTest, WitnessesChangeNothingOfWhatATrainerTrains) {
  const Fields cells[] = {CellOfVerl(""), {{"engine", "torchtitan"}}, RestartedTransformers()};
  const fs::path python =
      fs::canonical("harness/cell/python/bkm_cell/cell.py").parent_path().parent_path();
  std::vector<std::future<absl::StatusOr<ProcessResult>>> started;  // a core each
  for (const Fields& cell : cells) {
    const Json request = run().FileOf(cell, "request.json");
    const fs::path folder = fs::path(::testing::TempDir()) / TextOf(request, "adapter");
    ASSERT_TRUE(WriteFile(folder / "request.json", ToText(request)).ok());
    const Command bare = {
        .argv = {TextOf(request, "python"), "-m", "bkm_cell.unwatched", "request.json"},
        .set_env = {{"PYTHONPATH", python.string()},
                    {"OMP_NUM_THREADS", "1"},
                    {"HF_HUB_OFFLINE", "1"}},
        .directory = folder};
    started.push_back(std::async(std::launch::async, [bare] { return RunCommand(bare); }));
  }
  for (size_t i = 0; i < started.size(); ++i) {
    const std::string watched =
        TextOf(ObjectOf(run().FileOf(cells[i], "observation.json"), "adapter"), "trained");
    ASSERT_EQ(watched.size(), 64u) << run().Cell(cells[i]);
    const absl::StatusOr<ProcessResult> bare = started[i].get();
    ASSERT_TRUE(bare.ok()) << bare.status();
    EXPECT_THAT(bare->out, HasSubstr(watched)) << run().Cell(cells[i]) << bare->err;
  }
}

TEST_F(RealTrainersTest, APolicyIsUpdatedOnARollout) {
  const Fields cell = {{"objective", "ppo"}};
  EXPECT_EQ(run().VerdictOf(cell), "ok at golden") << run().Cell(cell);
}

class MoreRealTrainersTest : public SharedRunTest<MoreRealTrainersTest> {
 public:
  static absl::StatusOr<RealRun> MakeRun() {
    return RealRun::Make({kTrainersMatrix, "--no-controls"}, "more-trainers");
  }
};

// Of a cell that has the packages that verl does not declare.
std::string ExpectedOfVerl(const Json& cell) {
  const Json& probe = ObjectOf(cell, "probe");
  const std::string id = TextOf(cell, "id");
  const auto has = [&](const char* text) { return absl::StrContains(id, text); };
  // transformers' sdpa leaves gemma2's softcap out, under whatever trainer. verl's dataset cuts off
  // ends only, and its trainer skips an epoch if a checkpoint is of the end of one.
  if (TextOf(cell, "engine") == "verl-fsdp")
    return (has("model=gemma2") && has("attention=sdpa")) || has("truncation=left") ||
                   has("global_batch_size=3")
               ? "wrong"
               : "ok";
  // verl's TorchTitan engine does not hand its clipping norm and the length of a decay on, writes
  // no checkpoint, asks for a backend that needs torch 2.14, and sums the gradients of replicas.
  const bool has_ranks = !TextOf(probe, "layout").empty();
  if (has("resume_checkpoint") || (has_ranks && !has("spmd_backend"))) return "broken";
  return has("clip_norm") || has("warmup_steps") || has("dp_replicate") ? "wrong" : "ok";
}

TEST_F(MoreRealTrainersTest, EveryVersionOfVerlThatStartsTrainsWhatItsDataFileSays) {
  int subjects = 0;
  for (const Json& cell : ListOf(run().json(), "cells")) {
    if (TextOf(cell, "role") != "subject" || TextOf(cell, "runtime") != "cpu-serving") continue;
    ++subjects;
    EXPECT_EQ(TextOf(cell, "verdict"), ExpectedOfVerl(cell))
        << TextOf(cell, "id") << ": " << TextOf(cell, "message");
  }
  EXPECT_EQ(subjects, 54);
}

// Micro-batches whose critic's loss is the mean of each one's own are wrong: up to 0.8.0. And 0.7.1
// shards a policy by FSDP1, although actor.strategy asks for FSDP2.
TEST_F(MoreRealTrainersTest, UpdatesOnARolloutAreThoseOfPpo) {
  int subjects = 0;
  for (const Json& cell : ListOf(run().json(), "cells")) {
    if (TextOf(ObjectOf(cell, "probe"), "objective") != "ppo") continue;
    ++subjects;
    const std::string id = TextOf(cell, "id"), version = TextOf(cell, "engine_label");
    const bool is_critic = absl::StrContains(id, "head=value");
    const bool is_wrong = is_critic ? absl::StrContains(id, "micro_batches=2") &&
                                          (version == "0.7.1" || version == "0.8.0")
                                    : version == "0.7.1";
    EXPECT_EQ(TextOf(cell, "verdict"), is_wrong ? "wrong" : "ok")
        << id << ": " << TextOf(cell, "message");
  }
  EXPECT_EQ(subjects, 24);
}

TEST_F(MoreRealTrainersTest, TransformersTrainerTrainsWhatItsDataFileSays) {
  int subjects = 0;
  for (const Json& cell : ListOf(run().json(), "cells")) {
    if (TextOf(cell, "engine") != "transformers-trainer") continue;
    ++subjects;
    // In transformers 4, a cache that config.json asks for hides from sdpa that documents are
    // packed.
    const bool is_wrong = TextOf(cell, "library_label") == "4.57.6" &&
                          TextOf(ObjectOf(cell, "probe"), "attention") == "sdpa";
    EXPECT_EQ(TextOf(cell, "verdict"), is_wrong ? "wrong" : "ok")
        << TextOf(cell, "id") << ": " << TextOf(cell, "message");
  }
  EXPECT_EQ(subjects, 29);
}

TEST_F(MoreRealTrainersTest, TorchtitansTrainerPacksConversationsRightFromBorders) {
  const auto cell = [](const char* commit) {
    return Fields{{"engine", "torchtitan"}, {"library_label", commit}, {"model", "qwen3"},
                  {"attention", "flex"},    {"torch", "2.13.0"},       {"chat_template", ""},
                  {"truncation", ""}};
  };
  EXPECT_EQ(run().ReasonOf(cell("c1465542e")), "wrong at mask, mask-leak");
  EXPECT_EQ(run().VerdictOf(cell("baba6d82e")), "ok at golden");
  // It asks torch 2.13 for a function of a later one after the first step.
  EXPECT_EQ(run().ReasonOf(cell("952427842")), "broken at step, attribute-missing");
}

TEST_F(MoreRealTrainersTest, OnlyTheOldestVersionStartsWithWhatItDeclares) {
  EXPECT_EQ(run().VerdictOf({{"runtime", "cpu"}, {"engine_label", "0.7.1"}}), "ok at golden");
  for (const char* version : {"0.8.0", "0.9.0", "0.9.1"})
    EXPECT_EQ(run().ReasonOf({{"runtime", "cpu"}, {"engine_label", version}}),
              "broken at import, module-missing");
}

}  // namespace
}  // namespace bkm
