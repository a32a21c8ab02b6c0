// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "harness/model/dimension.h"
#include "harness/publish/testing_table.h"

namespace bkm {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

// A row whose cell with flex is right, with qwen3 in bf16.
class CoverageTest : public ::testing::Test {
 protected:
  Coverage Covered() const { return CoverageOf(row_); }
  // `asked`: "layout=cp=2,input=padded", as an id says it.
  PublishedCell& Add(const std::string& asked, VerdictKind kind = VerdictKind::kOk,
                     const std::string& model = "qwen3") {
    PublishedCell cell = ACell("flex", {.kind = kind, .stage = Stage::kGolden});
    if (kind == VerdictKind::kWrong) cell.evidence.verdict.reason = "entropy-off";
    if (kind == VerdictKind::kBroken) cell.evidence.verdict.reason = "raised";
    cell.probe = *ProbeOfId(asked);
    cell.probe.attention = "flex";
    cell.probe.model = model;
    row_.cells.push_back(cell);
    return row_.cells.back();
  }

  PublishedRow row_ = AGoodRow();
};

TEST_F(CoverageTest, WhatNoCellMeasuredIsNotTested) {
  const Coverage coverage = Covered();
  EXPECT_THAT(coverage.ok, ElementsAre("the model qwen3 (flex bf16)"));
  EXPECT_THAT(coverage.not_ok, ElementsAre(StartsWith("the model qwen3 (sdpa bf16: refused at ")));
  EXPECT_THAT(coverage.not_tested,
              IsSupersetOf({"the model llama3", "fp32", "micro-batches", "padded input",
                            "offloading", "MXFP4 weights", "more than 1 rank", "torch.compile",
                            "verl's workers and configuration files", "a GPU"}));
  EXPECT_THAT(coverage.not_tested, Not(Contains("FSDP1"))) << "of verl-fsdp only";
}

TEST_F(CoverageTest, WhatWasMeasuredAndIsWrongIsNeverCalledUntested) {
  Add("temperature=0.7,entropy=true", VerdictKind::kWrong);
  EXPECT_THAT(
      Covered().not_ok,
      IsSupersetOf({"entropy (qwen3 flex: wrong at golden, entropy-off)",
                    "a temperature other than 1 (qwen3 flex: wrong at golden, entropy-off)"}));
  EXPECT_THAT(Covered().not_tested, Not(Contains(HasSubstr("entropy"))));
  EXPECT_THAT(Covered().ok, Not(Contains(HasSubstr("entropy"))));
}

TEST_F(CoverageTest, ADecayOfWeightsIsNoDecayOfTheLearningRate) {
  Add("optimizer=weight_decay:0.1");
  EXPECT_THAT(Covered().not_tested, Contains("a decay of the learning rate"));
  EXPECT_THAT(Covered().ok, Contains("other settings of AdamW (qwen3 flex)"));
}

TEST_F(CoverageTest, AnAspectMayBeRightInOneCellAndWrongInAnother) {
  Add("micro_batches=2");
  Add("documents=200+1,micro_batches=2", VerdictKind::kWrong);
  EXPECT_THAT(Covered().ok, Contains("micro-batches (qwen3 flex)"));
  EXPECT_THAT(Covered().not_ok,
              Contains("micro-batches (qwen3 flex: wrong at golden, entropy-off)"));
}

TEST_F(CoverageTest, OneModelVouchesForItselfOnly) {
  Add("micro_batches=2");
  EXPECT_THAT(Covered().not_tested, Not(Contains(StartsWith("with other models"))));
  Add("", VerdictKind::kOk, "llama3");
  EXPECT_THAT(Covered().not_tested, Contains("with other models than qwen3: micro-batches"));
  Add("micro_batches=2", VerdictKind::kWrong, "llama3");
  EXPECT_THAT(Covered().not_tested, Not(Contains(StartsWith("with other models"))));
}

TEST_F(CoverageTest, AModelThatAMatrixLeavesOutIsNotTested) {
  Add("", VerdictKind::kBroken, "gpt_oss");
  EXPECT_THAT(Covered().not_ok,
              Contains("the model gpt_oss (flex bf16: broken at golden, raised)"));
  EXPECT_THAT(
      Covered().not_tested,
      AllOf(Contains("the model deepseek_v3"),
            Contains(StartsWith("the model qwen3_moe (bkm cannot judge it: verl looks a flavor")),
            Not(Contains(HasSubstr("gpt_oss")))));
}

TEST_F(CoverageTest, LayoutsNameTheirFurtherOptions) {
  Add("layout=dp_shard=2,options=spmd_backend:\"default\"");
  Add("layout=dp_shard=2", VerdictKind::kBroken);
  Add("layout=tp=2", VerdictKind::kUnsupported);
  EXPECT_THAT(Covered().ok, Contains("layout dp_shard=2 (qwen3 flex [spmd_backend=\"default\"])"));
  EXPECT_THAT(Covered().not_ok,
              Contains("layout dp_shard=2 (qwen3 flex: broken at golden, raised)"));
  EXPECT_THAT(Covered().not_tested,
              IsSupersetOf({"layout tp=2 (unsupported)", "dp_replicate", "tp", "cp", "pp", "ep"}));
}

TEST_F(CoverageTest, ARowSaysWhatItsRightCellsHideUnlessAnExactCellShowsIt) {
  const std::string hidden = "errors of 100 % in the gradients of 3 of 9 tensors (qwen3, bf16)";
  EXPECT_THAT(Covered().not_tested, Not(Contains(hidden)));
  row_.cells[0].evidence.verdict.blind = {"errors of 100 % in the gradients of 3 of 9 tensors"};
  EXPECT_THAT(Covered().not_tested, Contains(hidden).Times(1));
  PublishedCell exact = row_.cells[0];
  exact.probe.precision = "fp32";
  exact.evidence.verdict.blind = {};
  row_.cells.push_back(exact);
  EXPECT_THAT(Covered().not_tested, Not(Contains(hidden)));
  row_.cells.back().probe.model = "llama3";
  EXPECT_THAT(Covered().not_tested, Contains(hidden));
}

TEST_F(CoverageTest, AnOptionIsTestedOnlyIfItIsSeenToAct) {
  PublishedCell& cell = Add("options=param_offload:true");
  const auto with = [&](EffectKind kind) {
    cell.evidence.verdict.effects = {{"param_offload", kind, ""}};
    return Covered();
  };
  EXPECT_THAT(with(EffectKind::kActs).ok, Contains("offloading (qwen3 flex)"));
  EXPECT_THAT(with(EffectKind::kActs).not_tested, Not(Contains(HasSubstr("offload"))));
  EXPECT_THAT(with(EffectKind::kNotObserved).not_tested,
              IsSupersetOf({"offloading", "param_offload (accepted, effect not observed)"}));
  EXPECT_THAT(with(EffectKind::kUnknown).not_tested,
              IsSupersetOf({"offloading", "param_offload (accepted, effect unknown)"}));
}

TEST_F(CoverageTest, ARowOfAGpuSaysThatItsFloorsAreThoseOfACpu) {
  row_.device = "cuda";
  EXPECT_THAT(Covered().not_tested,
              Contains("floors of this device (they were measured on a CPU)"));
  EXPECT_THAT(Covered().not_tested, Not(Contains("a GPU")));
}

TEST_F(CoverageTest, ARowThatDoesNotWorkHasNone) {
  const Coverage coverage = CoverageOf(AContradiction());
  EXPECT_THAT(coverage.ok, IsEmpty());
  EXPECT_THAT(coverage.not_ok, IsEmpty());
  EXPECT_THAT(coverage.not_tested, IsEmpty());
}

}  // namespace
}  // namespace bkm
