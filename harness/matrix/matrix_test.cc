// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/matrix/matrix.h"

#include <gtest/gtest.h>

namespace bkm {
namespace {

std::string ErrorOf(const char* text) {
  return std::string(MatrixFromJson(*ParseJson(text, "m.json"), "m.json").status().message());
}

TEST(MatrixTest, ReadsEveryAxisAndTheDefaults) {
  const Matrix matrix = *MatrixFromJson(*ParseJson(R"({"schema": 1, "name": "m",
      "groups": [{"engine": {"kind": "verl-fsdp", "subjects": ["pypi:verl==0.9.1"]},
                  "probe": {"attention": ["eager", "sdpa"], "steps": 2}}],
      "exclude": [{"attention": "sdpa", "why": "because"}]})",
                                                   "m.json"),
                                        "m.json");
  ASSERT_EQ(matrix.groups.size(), 1u);
  EXPECT_EQ(matrix.groups[0].runtimes, std::vector<std::string>{"cpu"});
  std::vector<std::string> probes;
  for (const Probe& probe : matrix.groups[0].probes)
    probes.push_back(absl::StrCat(probe.attention, " ", probe.precision, " ", probe.steps));
  EXPECT_EQ(probes, (std::vector<std::string>{"eager fp32 2", "sdpa fp32 2"}));
  EXPECT_EQ(matrix.exclusions.at(0).why, "because");
}

TEST(MatrixTest, UnknownNameIsRefusedWithPathAndSuggestion) {
  EXPECT_EQ(ErrorOf(R"({"name": "m", "groups": [{"engine": {"kind": "verl-torchtian"}}]})"),
            "m.json: $.groups[0].engine.kind: unknown name 'verl-torchtian': did you mean "
            "'verl-torchtitan'?");
  EXPECT_EQ(
      ErrorOf(
          R"({"name": "m", "groups": [{"engine": {"kind": "torchtitan"}, "library": ["pypi:torchtitan==0.3.0"],
                     "probe": {"attention": ["felx"]}}]})"),
      "m.json: $.groups[0].probe.attention: unknown name 'felx': did you mean 'flex'?");
}

TEST(MatrixTest, AKernelOfTheHubIsRefusedForTheNetworkThatACellLacks) {
  EXPECT_EQ(
      ErrorOf(
          R"({"name": "m", "groups": [{"engine": {"kind": "transformers"}, "library": ["pypi:transformers==5.10.2"],
                     "probe": {"attention": ["kernels-community/flash-attn3"]}}]})"),
      "m.json: $.groups[0].probe.attention: kernels-community/flash-attn3 is fetched from the "
      "Hugging Face hub, and a cell has no network: ask for eager, sdpa, flex_attention, "
      "flash_attention_2, flash_attention_3");
}

TEST(MatrixTest, ControlTakesNoSubjects) {
  EXPECT_EQ(
      ErrorOf(
          R"({"name": "m", "groups": [{"engine": {"kind": "torchtitan", "subjects": ["pypi:verl==0.9.1"]}}]})"),
      "m.json: $.groups[0].engine.subjects: torchtitan is a control: it is the library alone and "
      "has no subjects");
}

TEST(MatrixTest, MissingPartsAreNamed) {
  EXPECT_EQ(ErrorOf(R"({"name": "m"})"),
            "m.json: $.groups: missing: a matrix has at least one group");
  EXPECT_EQ(
      ErrorOf(
          R"({"name": "m", "groups": [{"engine": {"kind": "torchtitan"}, "probe": {"attention": "flex"}}]})"),
      "m.json: $.groups[0].library: name at least one version of torchtitan");
}

}  // namespace
}  // namespace bkm
