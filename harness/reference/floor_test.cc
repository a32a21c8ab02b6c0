// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/reference/floor.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/base/files.h"
#include "harness/numerics/error_measures.h"

namespace bkm {
namespace {

// The real model, one step, in its own folder.
class FloorTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    Probe probe;
    probe.steps = 1;
    probe.entropy = true;
    probe_ = new LoadedProbe(*LoadProbe(*WriteProbeFolder(probe, Cache())));
    golden_ = new std::vector<StepFacts>(RunSteps(*probe_, probe_->weights, ExactArithmetic()));
  }
  static void TearDownTestSuite() {
    delete golden_;
    delete probe_;
    EXPECT_TRUE(RemoveTree(Cache()).ok());
  }
  static std::filesystem::path Cache() {
    return std::filesystem::path(testing::TempDir()) / "floor_test";
  }
  static double LogProbMean(const Json& distance) { return distance["log_probs"]["mean"]; }

  static LoadedProbe* probe_;
  static std::vector<StepFacts>* golden_;
};
LoadedProbe* FloorTest::probe_ = nullptr;
std::vector<StepFacts>* FloorTest::golden_ = nullptr;

TEST_F(FloorTest, HasTheShapeOfTheContractAndIsAboveEveryRightRunAndFarBelowAWrongOne) {
  const Json floor = *ComputeFloor(*probe_, *golden_, "bf16");
  EXPECT_EQ(floor["schema"], 1);
  EXPECT_EQ(floor["precision"], "bf16");
  EXPECT_EQ(floor["members"].size(), 9);
  EXPECT_EQ(floor["members"][4]["way"], "bf16-parameters");
  EXPECT_EQ(floor["members"][4]["dither"], 1);
  EXPECT_LE(floor["members"][4]["log_prob_means"][0], LogProbMean(floor["steps"][0]));
  ASSERT_EQ(floor["steps"].size(), 1);
  EXPECT_EQ(floor["steps"][0]["grad"].size(), 90);
  // Reports in fp32 are nearer: an error of the loss averages those of 277 tokens.
  const Json& in_fp32 = floor["steps"][0]["in_fp32"];
  EXPECT_LT(LogProbMean(in_fp32), LogProbMean(floor["steps"][0]));
  EXPECT_LT(in_fp32["loss"]["abs"], 0.2 * floor["steps"][0]["loss"]["abs"].get<double>());
  EXPECT_GT(in_fp32["loss"]["abs"], 0.001);
  // An entropy in bf16 is the difference of two rounded numbers near 7.5.
  EXPECT_LT(in_fp32["entropy"]["mean"], 0.1 * floor["steps"][0]["entropy"]["mean"].get<double>());
  // A right run outside the ensemble: another dithering.
  const std::vector<Arithmetic> ways = *WaysOf("bf16");
  for (const Arithmetic& way : ways) {
    const StepFacts run = RunSteps(*probe_, Dithered(probe_->weights, way, 1000), way)[0];
    const Json distance = *DistanceOf(probe_->folder.steps[0], run, (*golden_)[0]);
    const Json flat = distance.flatten();
    for (const auto& [key, value] : flat.items()) {
      const double least = floor["steps"][0].at(Json::json_pointer(key));
      EXPECT_LE(value.get<double>(), 2 * least) << way.name << " " << key;
    }
    if (way.log_probs != at::kFloat) continue;
    for (const char* of_tokens : {"log_probs", "entropy"})
      EXPECT_LE(distance[of_tokens]["mean"], 2 * in_fp32[of_tokens]["mean"].get<double>())
          << way.name << " " << of_tokens;
  }
  // A wrong run: documents see each other.
  LoadedProbe leaking = *probe_;
  leaking.folder.steps[0].document_lengths = {280};
  const StepFacts wrong = RunSteps(leaking, leaking.weights, ExactArithmetic())[0];
  const Json distance = *DistanceOf(probe_->folder.steps[0], wrong, (*golden_)[0]);
  EXPECT_GT(LogProbMean(distance), 7 * 4 * LogProbMean(floor["steps"][0]));
}

TEST_F(FloorTest, OfFp32IsFarBelowThatOfBf16) {
  const Json step = (*ComputeFloor(*probe_, *golden_, "fp32"))["steps"][0];
  EXPECT_FALSE(step.contains("in_fp32"));
  EXPECT_GT(LogProbMean(step), 4e-7);
  EXPECT_LT(LogProbMean(step), 5e-6);
  EXPECT_GT(step["grad"]["model.norm.weight"]["rel"], 6e-8);
  EXPECT_LT(step["grad"]["model.norm.weight"]["rel"], 1e-4);
}

// All that a layout divides, and no rounding: the same numbers. With rounding: others.
TEST_F(FloorTest, DividedSumsAreTheSameSumsRoundedInParts) {
  const Reductions divided{.documents = 2, .queries = 2, .features = 2};
  for (const auto& [way, largest] :
       {std::pair(ExactArithmetic(), 1e-11), std::pair(WaysOf("bf16")->at(1), 0.2)}) {
    Arithmetic in_parts = way;
    in_parts.reductions = divided;
    const StepFacts whole = RunSteps(*probe_, probe_->weights, way)[0];
    const StepFacts parts = RunSteps(*probe_, probe_->weights, in_parts)[0];
    const Json distance = *DistanceOf(probe_->folder.steps[0], parts, whole);
    EXPECT_LT(LogProbMean(distance), largest) << way.name;
    for (const auto& [name, gradient] : distance["grad"].items()) {
      EXPECT_LT(gradient["rel"], largest) << way.name << " " << name;
      if (way.matmul == at::kBFloat16) {
        EXPECT_GT(gradient["rel"], 1e-4) << name;
      }
    }
  }
}

// Each kind of sum by itself: what it divides moves by roundings to bf16, what it does not divide
// by what another kernel does in fp32.
TEST_F(FloorTest, EachReductionDividesItsOwnSums) {
  Arithmetic way = WaysOf("bf16")->front();
  const StepFacts whole = RunSteps(*probe_, probe_->weights, way)[0];
  const std::string values = "model.layers.7.self_attn.v_proj.weight";
  const std::string down = "model.layers.7.mlp.down_proj.weight";
  const auto moved = [&](const Reductions& reductions, const std::string& name) {
    way.reductions = reductions;
    const StepFacts parts = RunSteps(*probe_, probe_->weights, way)[0];
    return (*DistanceOf(probe_->folder.steps[0], parts, whole))["grad"][name]["rel"].get<double>();
  };
  constexpr double kNoise = 2e-4;
  constexpr double kRounded = 1e-3;
  // The values of the last layer get their gradient from all queries, a product after it from one
  // token's own.
  EXPECT_GT(moved({.queries = 2}, values), kRounded);
  EXPECT_LT(moved({.queries = 2}, down), kNoise);
  // The gradient of the last norm's weight is summed in fp32, whoever sums it.
  EXPECT_GT(moved({.documents = 2}, down), kRounded);
  EXPECT_LT(moved({.documents = 2}, "model.norm.weight"), kNoise);
  EXPECT_GT(moved({.features = 2}, down), kRounded);
}

TEST_F(FloorTest, DitheringMovesWeightsByAtMostHalfAnUlpOfTheType) {
  const Arithmetic autocast = WaysOf("bf16")->front();
  const char* name = "model.layers.0.mlp.up_proj.weight";
  const at::Tensor before = probe_->weights.at(name).to(at::kDouble).view(-1);
  const at::Tensor after = Dithered(probe_->weights, autocast, 1).at(name).view(-1);
  const at::Tensor other = Dithered(probe_->weights, autocast, 2).at(name).view(-1);
  double largest = 0;
  for (int64_t i = 0; i < 2000; ++i) {
    const double weight = before[i].item<double>();
    largest = std::max(largest, std::abs(after[i].item<double>() - weight) / HalfUlp(weight, 7));
  }
  EXPECT_LE(largest, 1);
  EXPECT_GT(largest, 0.95);
  EXPECT_FALSE(at::equal(after, other));
  EXPECT_TRUE(at::equal(Dithered(probe_->weights, autocast, 0).at(name), probe_->weights.at(name)));
  // Autocast keeps norms in fp32.
  EXPECT_TRUE(at::equal(Dithered(probe_->weights, autocast, 1).at("model.norm.weight"),
                        probe_->weights.at("model.norm.weight")));
}

TEST_F(FloorTest, GradientThatTheGoldenLacksIsAShareOfAllGradients) {
  const std::string name = "model.norm.weight";
  StepFacts golden = golden_->front();
  WeightFacts& none = golden.weights[name];
  none.gradient.assign(none.gradient.size(), 0);
  none.gradient_norm = 0;
  const PackedBatch& batch = probe_->folder.steps[0];
  EXPECT_EQ((*DistanceOf(batch, golden, golden))["grad"][name],
            Json({{"rel", 0}, {"cosine_gap", 0}, {"of_total", 0.0}}));
  double squares = 0;
  for (const auto& [other, weight] : golden.weights)
    squares += weight.gradient_norm * weight.gradient_norm;
  const double share = golden_->front().weights[name].gradient_norm / std::sqrt(squares);
  const Json stray = (*DistanceOf(batch, golden_->front(), golden))["grad"][name];
  EXPECT_EQ(stray["rel"], 0);
  EXPECT_NEAR(stray["of_total"], share, 1e-12);
}

TEST(ShareAmongExpertsTest, ExpertsOfALayerGetTheLargestDistanceOfAnyOfThem) {
  Json step = {{"grad",
                {{"l.0.experts.0.w", {{"rel", 0.0}, {"of_total", 0.5}}},
                 {"l.0.experts.12.w", {{"rel", 0.2}, {"of_total", 0.1}}},
                 {"l.1.experts.0.w", {{"rel", 0.1}, {"of_total", 0.1}}},
                 {"l.0.router.w", {{"rel", 0.0}, {"of_total", 0.0}}}}}};
  ShareAmongExperts(step);
  const Json both = {{"rel", 0.2}, {"of_total", 0.5}};
  EXPECT_EQ(step["grad"]["l.0.experts.0.w"], both);
  EXPECT_EQ(step["grad"]["l.0.experts.12.w"], both);
  EXPECT_EQ(step["grad"]["l.1.experts.0.w"], Json({{"rel", 0.1}, {"of_total", 0.1}}));
  EXPECT_EQ(step["grad"]["l.0.router.w"], Json({{"rel", 0.0}, {"of_total", 0.0}}));
}

TEST_F(FloorTest, AnUnknownPrecisionIsRefused) {
  EXPECT_EQ(ComputeFloor(*probe_, *golden_, "bf61").status().message(),
            "unknown precision 'bf61': did you mean 'bf16'?");
}

}  // namespace
}  // namespace bkm
