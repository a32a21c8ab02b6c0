// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/option_effect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/judge/testing_observation.h"
#include "harness/judge/testing_steps.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;

// A cell and its twin, which saw the same.
class OptionEffectTest : public ::testing::Test {
 protected:
  OptionEffectTest() {
    for (Side* side : {&with_, &without_}) {
      side->folder = *CreateTempDirectory(::testing::TempDir(), "cell");
      side->cell = MakeRightCell();
      side->observation.steps = side->cell.reported;
      side->observation.ops = {"aten::bmm"};
      side->lines = Json::parse(
          R"({"trained": {"engine": {"verl/a.py": [1, 2]}, "library": {"t/b.py": [7]}}})");
    }
  }

  OptionEffect Effect() {
    return EffectOf(Seen(with_), {"param_offload", is_measured_ ? Seen(without_) : SeenCell()});
  }

  struct Side {
    Observation observation;
    Json lines;
    RightCell cell;
    std::filesystem::path folder;
  };
  static SeenCell Seen(Side& side) {
    for (size_t k = 0; k < side.observation.steps.size(); ++k) {
      side.observation.steps[k].tensors = absl::StrCat("step", k, ".safetensors");
      WriteStepTensors(side.cell, k, side.folder / side.observation.steps[k].tensors);
    }
    return Unchanged(side);
  }
  // With the files as they are.
  static SeenCell Unchanged(Side& side) {
    return {&side.observation, side.lines.is_null() ? nullptr : &side.lines, side.folder};
  }

  Side with_, without_;
  bool is_measured_ = true;
};

TEST_F(OptionEffectTest, WhatChangesNothingIsNotObserved) {
  EXPECT_EQ(Effect().kind, EffectKind::kNotObserved);
  EXPECT_EQ(Effect().option, "param_offload");
  EXPECT_EQ(Effect().seen, "");
}

TEST_F(OptionEffectTest, ALineThatRunsOnlyWithItActs) {
  with_.lines["trained"]["engine"]["verl/a.py"].push_back(3);
  without_.lines["built"]["library"]["t/b.py"] = {9};
  const OptionEffect effect = Effect();
  EXPECT_EQ(effect.kind, EffectKind::kActs);
  EXPECT_EQ(effect.seen,
            "1 line runs only with it, first verl/a.py:3; 1 line runs only without it, first "
            "t/b.py:9");
}

TEST_F(OptionEffectTest, OpsCollectivesAndSharesAct) {
  with_.observation.ops.push_back("aten::fused");
  EXPECT_EQ(Effect().seen, "the ops of the forward");
  with_.observation.ops.pop_back();
  with_.observation.ranks.emplace_back().collectives = {{.op = "all_reduce", .calls = 1}};
  EXPECT_EQ(Effect().seen, "the collectives");
  with_.observation.ranks.clear();
  with_.observation.steps[0].products = {{"bf16", 3}};
  EXPECT_EQ(Effect().seen, "the matrix products");
}

TEST_F(OptionEffectTest, OneOtherBitOfANumberActs) {
  with_.cell.tensors[1].tensors.begin()->second.gradient[0] *= 1 + 1e-6;
  EXPECT_EQ(Effect().kind, EffectKind::kActs);
  EXPECT_THAT(Effect().seen, HasSubstr(" in step 2"));
  with_.cell = MakeRightCell();
  with_.observation.steps[0].loss = 9;
  EXPECT_EQ(Effect().seen, "the loss of step 1");
}

TEST_F(OptionEffectTest, NumbersThatCannotBeReadLeaveItUnknown) {
  for (const Side* side : {&with_, &without_}) {
    const OptionEffect before = Effect();
    EXPECT_EQ(before.kind, EffectKind::kNotObserved);
    const SeenCell with = Unchanged(with_), without = Unchanged(without_);
    std::filesystem::remove(side->folder / "step1.safetensors");
    const OptionEffect effect = EffectOf(with, {"param_offload", without});
    EXPECT_EQ(effect.kind, EffectKind::kUnknown);
    EXPECT_THAT(effect.seen, HasSubstr("the numbers of the steps cannot be compared: "));
    EXPECT_THAT(effect.seen, HasSubstr("step1.safetensors"));
  }
}

TEST_F(OptionEffectTest, WhatDiffersActsAlthoughNumbersCannotBeRead) {
  with_.observation.ops.push_back("aten::fused");
  Effect();  // writes the files
  std::filesystem::remove(without_.folder / "step0.safetensors");
  const OptionEffect effect = EffectOf(Unchanged(with_), {"param_offload", Unchanged(without_)});
  EXPECT_EQ(effect.kind, EffectKind::kActs);
  EXPECT_EQ(effect.seen, "the ops of the forward");
}

TEST_F(OptionEffectTest, WithoutATwinNobodyKnows) {
  is_measured_ = false;
  EXPECT_EQ(Effect().kind, EffectKind::kUnknown);
  EXPECT_EQ(Effect().seen, "the cell without it was not measured");
}

}  // namespace
}  // namespace bkm
