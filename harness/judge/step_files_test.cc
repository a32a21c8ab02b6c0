// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/step_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "harness/base/files.h"
#include "harness/numerics/safetensors.h"

namespace bkm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Path(const char* name) { return ::testing::TempDir() + "/" + name; }

NamedTensor Doubles(const char* name, std::vector<double> values) {
  return NamedTensor::F64(name, {static_cast<int64_t>(values.size())}, values);
}
NamedTensor Floats(const char* name, std::vector<float> values) {
  return NamedTensor::F32(name, {static_cast<int64_t>(values.size())}, values);
}

TEST(StepFilesTest, StepTensorsAreRead) {
  const std::string path = Path("step.safetensors");
  ASSERT_TRUE(WriteSafetensors(path, {Floats("log_probs", {-1, -2}), Floats("grad/a.b", {0.5}),
                                      Floats("before/a.b", {1}), Floats("after/a.b", {2}),
                                      Doubles("norms/a.b", {3, 4, 5})})
                  .ok());
  const StepTensors step = *ReadStepTensors(*SafetensorsFile::Open(path));
  EXPECT_THAT(step.log_probs, ElementsAre(-1, -2));
  EXPECT_THAT(step.tensors.at("a.b").gradient, ElementsAre(0.5));
  EXPECT_THAT(step.tensors.at("a.b").before, ElementsAre(1));
  EXPECT_THAT(step.tensors.at("a.b").after, ElementsAre(2));
  EXPECT_THAT(step.tensors.at("a.b").norms, ElementsAre(3, 4, 5));
}

TEST(StepFilesTest, GoldenIsReadStepByStep) {
  const std::string path = Path("golden.safetensors");
  ASSERT_TRUE(
      WriteSafetensors(path, {Doubles("step0/log_probs", {-1}), Doubles("step0/loss", {1}),
                              Doubles("step0/total_norm", {2}), Doubles("step0/grad/w", {3, 4}),
                              Doubles("step0/grad_norm/w", {5})})
          .ok());
  const std::vector<GoldenStep> steps = *ReadGoldenFile(path);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].loss, 1);
  EXPECT_EQ(steps[0].total_norm, 2);
  EXPECT_THAT(steps[0].tensors.at("w").gradient, ElementsAre(3, 4));
  EXPECT_EQ(steps[0].tensors.at("w").gradient_norm, 5);
}

TEST(StepFilesTest, GoldenThatIsNotFiniteIsRefused) {
  const std::string path = Path("nan.safetensors");
  ASSERT_TRUE(WriteSafetensors(
                  path, {Doubles("step0/log_probs", {std::numeric_limits<double>::quiet_NaN()}),
                         Doubles("step0/loss", {1}), Doubles("step0/total_norm", {2})})
                  .ok());
  EXPECT_EQ(ReadGoldenFile(path).status().message(), path + ": step0/log_probs is not finite");
}

TEST(StepFilesTest, FloorIsRead) {
  const std::string path = Path("floor.json");
  ASSERT_TRUE(WriteFile(path, R"({"schema": 1, "precision": "bf16", "members": [], "steps": [
      {"loss": {"abs": 0.5}, "log_probs": {"mean": 1, "q99": 2, "max": 2.5}, "total_norm": {"rel": 3},
       "entropy": {"mean": 6, "q99": 7, "max": 8},
       "in_fp32": {"loss": {"abs": 0.25}, "log_probs": {"mean": 0.1, "q99": 0.2, "max": 0.3},
                   "entropy": {"mean": 0.6, "q99": 0.7, "max": 0.8}},
       "grad": {"w": {"rel": 4, "cosine_gap": 5}}}]})")
                  .ok());
  const std::vector<FloorStep> steps = *ReadFloorFile(path);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].reports.loss, 0.5);
  EXPECT_EQ(steps[0].reports.log_probs.mean, 1);
  EXPECT_EQ(steps[0].reports.log_probs.q99, 2);
  EXPECT_EQ(steps[0].reports.log_probs.max, 2.5);
  EXPECT_EQ(steps[0].in_fp32->loss, 0.25);
  EXPECT_EQ(steps[0].in_fp32->log_probs.max, 0.3);
  EXPECT_EQ(steps[0].reports.entropy.q99, 7);
  EXPECT_EQ(steps[0].in_fp32->entropy.q99, 0.7);
  EXPECT_EQ(steps[0].total_norm, 3);
  EXPECT_EQ(steps[0].gradients.at("w"), 4);
}

TEST(StepFilesTest, AFloorOfAnOlderVersionHasOneFloorForEveryEntropy) {
  const std::string path = Path("older.json");
  ASSERT_TRUE(WriteFile(path, R"({"schema": 1, "precision": "bf16", "members": [], "steps": [
      {"loss": {"abs": 1}, "log_probs": {"mean": 1, "q99": 2, "max": 3}, "total_norm": {"rel": 3},
       "entropy": {"mean": 6, "q99": 7, "max": 8},
       "in_fp32": {"loss": {"abs": 1}, "log_probs": {"mean": 1, "q99": 2, "max": 3}},
       "grad": {}}]})")
                  .ok());
  EXPECT_EQ(ReadFloorFile(path)->front().in_fp32->entropy.max, 8);
}

TEST(StepFilesTest, FloorWithoutANumberNamesThePath) {
  const std::string path = Path("short.json");
  ASSERT_TRUE(WriteFile(path, R"({"steps": [{"loss": {"abs": -1}}]})").ok());
  EXPECT_EQ(ReadFloorFile(path).status().message(),
            path + ": $.steps[0].loss.abs: a number of at least 0 is needed here");
  ASSERT_TRUE(WriteFile(path, R"({"steps": [{
      "loss": {"abs": 0.5}, "log_probs": {"mean": 1, "q99": 2, "max": 2.5}, "total_norm": {"rel": 3},
      "in_fp32": {"loss": {"abs": 1}, "log_probs": {}}, "grad": {}}]})")
                  .ok());
  EXPECT_EQ(ReadFloorFile(path).status().message(),
            path + ": $.steps[0].in_fp32.log_probs.mean: a number of at least 0 is needed here");
}

TEST(StepFilesTest, MissingAndCorruptFilesAreErrorsThatNameThem) {
  const std::string path = Path("corrupt.safetensors");
  ASSERT_TRUE(WriteFile(path, "not tensors").ok());
  ObservedStep step;
  step.tensors = "corrupt.safetensors";
  EXPECT_THAT(std::string(ReadSteps({{step}}, ::testing::TempDir()).status().message()),
              HasSubstr("corrupt.safetensors"));
  EXPECT_THAT(std::string(ReadGoldenFile("/nowhere").status().message()), HasSubstr("/nowhere"));
  EXPECT_THAT(std::string(ReadFloorFile("/nowhere").status().message()), HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace bkm
