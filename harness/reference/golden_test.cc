// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Recomputes every committed golden. golden/numeric/README.md says how to make one.
#include "harness/reference/golden.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "absl/strings/str_split.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/numerics/error_measures.h"
#include "harness/numerics/golden_key.h"
#include "harness/numerics/safetensors.h"
#include "harness/reference/predicted.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 1e-9;  // relative: machines differ in the last bits of fp64
constexpr const char* kFolder = "golden/numeric";

void ExpectSame(const std::vector<double>& actual, const std::vector<double>& golden,
                const std::string& what) {
  const auto error = RelativeNormError(actual, golden);
  ASSERT_TRUE(error.ok()) << what << ": " << error.status().message();
  EXPECT_LE(*error, kTolerance) << what;
}

void ExpectSame(const StepFacts& actual, const StepFacts& golden) {
  ExpectSame({actual.loss}, {golden.loss}, "loss");
  ExpectSame({actual.total_norm}, {golden.total_norm}, "total norm");
  ASSERT_EQ(actual.log_probs.size(), golden.log_probs.size());
  for (size_t t = 0; t < golden.log_probs.size(); ++t) {
    ExpectSame({actual.log_probs[t]}, {golden.log_probs[t]}, "log-prob " + std::to_string(t));
  }
  for (const auto& [name, weight] : golden.weights) {
    const WeightFacts& other = actual.weights.at(name);
    ExpectSame(other.gradient, weight.gradient, "gradient of " + name);
    ExpectSame({other.gradient_norm}, {weight.gradient_norm}, "gradient norm of " + name);
    ExpectSame({other.parameter_norm}, {weight.parameter_norm}, "parameter norm of " + name);
  }
}

// The probe in the golden's metadata.
Probe ProbeOf(const fs::path& path) {
  const std::string numerics = SafetensorsFile::Open(path)->metadata().at("numerics");
  return *ProbeFromJson(*ParseJson(numerics, path.string()), path.string());
}

// The file's predicted log-probs, by fault.
std::map<std::string, std::vector<double>> PredictedIn(const fs::path& path) {
  std::map<std::string, std::vector<double>> predicted;
  const SafetensorsFile file = *SafetensorsFile::Open(path);
  for (const auto& [key, view] : file.tensors()) {
    const std::vector<std::string> parts = absl::StrSplit(key, '/');
    if (parts.front() == "predicted") predicted[parts.at(1)] = *file.Doubles(key);
  }
  return predicted;
}

TEST(GoldenTest, TheDefaultProbeHasACommittedGolden) {
  EXPECT_TRUE(fs::exists(fs::path(kFolder) / (GoldenKey(Probe()) + ".safetensors")));
}

TEST(GoldenTest, TheDefaultProbesGoldenPredictsEveryFaultOfItsModel) {
  std::vector<std::string> faults;
  for (const auto& [fault, log_probs] :
       PredictedIn(fs::path(kFolder) / (GoldenKey(Probe()) + ".safetensors"))) {
    faults.push_back(fault);
  }
  EXPECT_THAT(faults, testing::ElementsAre("bidirectional", "bidirectional-in-document",
                                           "causal-across-documents", "kv-interleaved", "no-rope",
                                           "norm-weights-ignored", "transposed-heads"));
}

TEST(GoldenTest, EveryCommittedGoldenIsNamedByItsKeyAndComesOutAgain) {
  const fs::path cache = fs::path(testing::TempDir()) / "golden_test";
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".safetensors") continue;
    SCOPED_TRACE(entry.path().string());
    EXPECT_LT(entry.file_size(), 1'000'000);
    const Probe probe = ProbeOf(entry.path());
    EXPECT_EQ(entry.path().stem(), GoldenKey(probe)) << "a stale golden";
    const LoadedProbe loaded = *LoadProbe(*WriteProbeFolder(probe, cache));
    const std::vector<StepFacts> golden = *ReadGolden(loaded, entry.path());
    const std::vector<StepFacts> actual = RunSteps(loaded, loaded.weights, ExactArithmetic());
    ASSERT_EQ(actual.size(), golden.size());
    for (size_t k = 0; k < golden.size(); ++k) {
      SCOPED_TRACE("step " + std::to_string(k));
      ExpectSame(actual[k], golden[k]);
    }
    const auto predicted = PredictedIn(entry.path());
    const auto again = PredictedAnswers(loaded, actual.front());
    EXPECT_EQ(again.size(), predicted.size());
    for (const auto& [fault, log_probs] : predicted) ExpectSame(again.at(fault), log_probs, fault);
  }
  EXPECT_TRUE(RemoveTree(cache).ok());
}

}  // namespace
}  // namespace bkm
