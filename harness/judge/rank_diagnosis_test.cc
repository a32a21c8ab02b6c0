// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/rank_diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/numerics/model_weights.h"
#include "harness/numerics/optimizer_arithmetic.h"
#include "harness/numerics/probe_data.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kWeight[] = "model.layers.1.self_attn.o_proj.weight";

// One right step of qwen3 in fp32 on two ranks, with three of its tensors. Each test breaks a part.
class RankDiagnosisTest : public ::testing::Test {
 protected:
  RankDiagnosisTest() {
    probe_.precision = "fp32";
    probe_.layout = *ParseLayout("dp_shard=2");
    probe_.optimizer.clip_norm = 1;
    const ModelShape shape = *ShapeOf(probe_);
    folder_.steps = {DrawBatch(probe_, shape, 0)};
    const auto documents = static_cast<int64_t>(folder_.steps[0].document_lengths.size());
    for (const WeightShape& weight : WeightsOf(shape)) {
      if (weight.name == kWeight || weight.name == "model.layers.1.mlp.up_proj.weight" ||
          weight.name == "model.layers.2.mlp.up_proj.weight")
        Add(weight);
    }
    golden_[0].log_probs.assign(folder_.steps[0].input_ids.size(), -7);
    steps_[0].log_probs = golden_[0].log_probs;
    golden_[0].total_norm = 0.5;
    observation_.steps.resize(1);
    observation_.steps[0].grad_norm = 0.5;
    observation_.steps[0].param_groups = {Settings()};
    for (int rank = 0; rank < 2; ++rank) {
      ObservedRank& one = observation_.ranks.emplace_back();
      one.rank = one.data_rank = rank;
      one.data_ranks = 2;
      one.documents = {{rank, rank == 0 ? 1 : documents - 1}};
      one.collectives = {{"reduce_scatter_tensor", "avg", 2, "float32", "backward", 9, 9'000'000}};
    }
  }

  static ObservedParamGroup Settings() {
    const OptimizerSettings asked;
    return {asked.learning_rate, asked.beta1, asked.beta2, asked.epsilon, asked.weight_decay};
  }

  void Add(const WeightShape& weight) {
    std::vector<int64_t>& places = folder_.places[weight.name] = DrawPlaces(weight, probe_.seed);
    const std::vector<float> values = DrawWeightAt(weight, probe_.seed, places);
    SampledTensor& seen = steps_[0].tensors[weight.name];
    seen.before.assign(values.begin(), values.end());
    for (const int64_t place : places)
      seen.gradient.push_back(0.001 * std::sin(static_cast<double>(place)));
    seen.norms[0] = 1;
    golden_[0].tensors[weight.name] = {seen.gradient, 1};
    floor_[0].gradients[weight.name] = 1e-6;
    AdamWMoments moments;
    OptimizerSettings settings;
    seen.after = seen.before;
    AdamWStep(settings, seen.gradient, moments, seen.after);
  }

  // The sampled elements of kWeight that lie in its last 128 rows of 256.
  std::vector<size_t> LastShard() const {
    std::vector<size_t> found;
    const std::vector<int64_t>& places = folder_.places.at(kWeight);
    const int64_t half = WeightOf(kWeight).numel() / 2;
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i] >= half) found.push_back(i);
    }
    return found;
  }

  WeightShape WeightOf(const std::string& name) const {
    for (const WeightShape& weight : WeightsOf(*ShapeOf(probe_))) {
      if (weight.name == name) return weight;
    }
    return {};
  }

  std::vector<std::string> Clauses() const {
    return DiagnoseRanks({probe_, observation_, folder_, golden_, floor_, steps_}).clauses;
  }

  Probe probe_;
  Observation observation_;
  ProbeFolder folder_;
  std::vector<GoldenStep> golden_{1};
  std::vector<FloorStep> floor_{1};
  std::vector<StepTensors> steps_{1};
};

TEST_F(RankDiagnosisTest, ARightCellHasNoClause) { EXPECT_THAT(Clauses(), IsEmpty()); }

TEST_F(RankDiagnosisTest, AShardOfALoadedWeightThatAnotherRankShouldHaveIsNamed) {
  const WeightShape weight = WeightOf(kWeight);
  for (const size_t i : LastShard()) {
    const int64_t other = folder_.places[kWeight][i] - weight.numel() / 2;
    steps_[0].tensors[kWeight].before[i] =
        DrawWeightAt(weight, probe_.seed, std::vector<int64_t>{other})[0];
  }
  EXPECT_THAT(Clauses(), ElementsAre("the loaded weight model.layers.1.self_attn.o_proj.weight "
                                     "holds the shard of rank 0 of 2 in rows 128 to 255 of 256 "
                                     "(the shard of rank 1 of 2) and is right in the rest"));
}

TEST_F(RankDiagnosisTest, AShardWithoutGradientIsNamed) {
  for (const size_t i : LastShard()) steps_[0].tensors[kWeight].gradient[i] = 0;
  EXPECT_THAT(Clauses(),
              ElementsAre("the gradient of model.layers.1.self_attn.o_proj.weight is zero in rows "
                          "128 to 255 of 256 (the shard of rank 1 of 2) and is right in the rest"));
}

TEST_F(RankDiagnosisTest, AShardThatIsNotUpdatedIsNamed) {
  SampledTensor& seen = steps_[0].tensors[kWeight];
  for (const size_t i : LastShard()) seen.after[i] = seen.before[i];
  EXPECT_THAT(Clauses(),
              ElementsAre("the update of model.layers.1.self_attn.o_proj.weight is stale in rows "
                          "128 to 255 of 256 (the shard of rank 1 of 2) and is right in the rest"));
}

TEST_F(RankDiagnosisTest, OneLayerThatIsOffIsNamed) {
  for (auto& [name, tensor] : steps_[0].tensors) {
    if (name.find("layers.1.") == std::string::npos) continue;
    for (size_t i = 0; i < tensor.gradient.size(); ++i) tensor.gradient[i] += i % 2 ? 0.01 : -0.01;
  }
  EXPECT_THAT(Clauses(), ElementsAre("gradients are off in 2 of 2 tensors of model.layers.1 and "
                                     "right in every other tensor: the parameters of a layer are "
                                     "reduced together"));
}

TEST_F(RankDiagnosisTest, ReplicasThatDifferSayWhetherACollectiveReducedThem) {
  probe_.layout = *ParseLayout("dp_replicate=2");
  observation_.rank_differences = {{"step 1", "grad/a", 1, 0.5}};
  EXPECT_THAT(Clauses(), IsEmpty()) << "something was reduced";
  for (ObservedRank& rank : observation_.ranks) rank.collectives[0].elements = 7;
  EXPECT_THAT(Clauses(), ElementsAre("no collective reduced the gradients over the group of 2"));
  observation_.ranks[1].collectives.clear();
  EXPECT_THAT(Clauses(), IsEmpty()) << "nobody recorded those of rank 1";
  observation_.rank_differences[0].name = "after/a";
  EXPECT_THAT(Clauses(), IsEmpty()) << "gradients are alike";
}

TEST_F(RankDiagnosisTest, CollectivesThatReducedTheGradientsAreNamed) {
  const auto reductions = [&] {
    return DiagnoseRanks({probe_, observation_, folder_, golden_, floor_, steps_}).reductions;
  };
  EXPECT_EQ(reductions(), "reduce_scatter_tensor (avg) over 2 ranks");
  for (ObservedRank& rank : observation_.ranks) rank.collectives[0].stage = "forward";
  EXPECT_EQ(reductions(), "") << "of activations";
  for (ObservedRank& rank : observation_.ranks) rank.collectives[0].stage = "backward";
  probe_.layout = *ParseLayout("tp=2");
  EXPECT_EQ(reductions(), "") << "these may be of activations, too";
}

TEST_F(RankDiagnosisTest, OneRankOrOtherStepsSayNothing) {
  for (const size_t i : LastShard()) steps_[0].tensors[kWeight].gradient[i] = 0;
  golden_.resize(2);
  EXPECT_THAT(Clauses(), IsEmpty());
  golden_.resize(1);
  probe_.layout = Layout();
  EXPECT_THAT(Clauses(), IsEmpty());
}

}  // namespace
}  // namespace bkm
