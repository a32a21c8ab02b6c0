// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// matrices/attn_implementation.json: the effect of `override_config.attn_implementation`, set as in
// verl's configuration, with four releases of verl and five of transformers. The tests cover every
// class of outcome, and prove from the code that ran that an override took effect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/testing/real_bkm.h"
#include "harness/testing/real_run.h"

namespace bkm {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kBuiltIn = {"eager", "sdpa", "flex_attention"};

class AttnImplementationTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    run_ = new absl::StatusOr<RealRun>(
        RealRun::Make({"matrices/attn_implementation.json", "--no-controls"}, "attn"));
  }
  static void TearDownTestSuite() { delete run_; }
  void SetUp() override {
    if (IsNoNetwork(run_->status())) GTEST_SKIP() << run_->status();
    ASSERT_TRUE(run_->ok()) << run_->status();
  }

  static RealRun::Fields At(const std::string& verl, const std::string& transformers,
                            const std::string& attention, const std::string& head = "lm") {
    return {{"engine_label", verl},
            {"library_label", transformers},
            {"attention", attention},
            {"head", head}};
  }
  static std::string ReasonOf(const RealRun::Fields& cell) { return (*run_)->ReasonOf(cell); }

  static absl::StatusOr<RealRun>* run_;
};
absl::StatusOr<RealRun>* AttnImplementationTest::run_ = nullptr;

// The cells ask for fp32, and the engine of verl 0.7.1 computes in bf16 whatever is asked.
std::string RightReason(const std::string& verl) {
  return verl == "0.7.1" ? "wrong at forward, precision-ignored" : "ok at golden, ";
}

struct Pair {
  const char* verl;
  std::vector<const char*> transformers;
};

TEST_F(AttnImplementationTest, IsHonouredAndRightPerTokenWhereverTheTwoWorkTogether) {
  const std::vector<Pair> pairs = {{"0.7.1", {"4.57.6"}},
                                   {"0.8.0", {"4.57.6", "5.3.0", "5.5.4", "5.10.2"}},
                                   {"0.9.0", {"5.5.4", "5.10.2"}},
                                   {"0.9.1", {"5.5.4", "5.10.2"}}};
  for (const Pair& pair : pairs) {
    for (const char* transformers : pair.transformers) {
      for (const std::string& attention : kBuiltIn) {
        const RealRun::Fields cell = At(pair.verl, transformers, attention);
        EXPECT_EQ(ReasonOf(cell), RightReason(pair.verl)) << pair.verl << " x " << transformers;
        const Json backend = (*run_)->FileOf(cell, "observation.json")["backend"];
        EXPECT_EQ(backend["configured"], attention);
        for (const Json& call : backend["called"]) {
          // eager_attention_forward, sdpa_attention_forward, flex_attention_forward
          const std::string way = attention.substr(0, attention.find('_'));
          EXPECT_THAT(call["callable"].get<std::string>(),
                      HasSubstr(absl::StrCat(way, "_attention_forward")));
        }
        EXPECT_EQ(backend["called"].size(), 8) << "layers";
      }
    }
  }
}

TEST_F(AttnImplementationTest, IsRefusedWhereThePackageIsMissingAndTheOptionIsNamed) {
  for (const char* verl : {"0.7.1", "0.8.0"}) {
    for (const char* transformers : {"4.57.6", "5.3.0", "5.5.4", "5.10.2"}) {
      const RealRun::Fields cell = At(verl, transformers, "flash_attention_2");
      EXPECT_EQ((*run_)->Cell(cell)["verdict"], "refused") << verl << " x " << transformers;
      EXPECT_THAT((*run_)->Cell(cell)["message"].get<std::string>(), HasSubstr("FlashAttention2"));
    }
  }
}

TEST_F(AttnImplementationTest, Verl071BreaksOnTransformers5AlthoughItsPinsAllowIt) {
  for (const char* transformers : {"5.3.0", "5.5.4", "5.10.2"}) {
    for (const std::string& attention : kBuiltIn) {
      const RealRun::Fields cell = At("0.7.1", transformers, attention);
      EXPECT_EQ(ReasonOf(cell), "broken at load, type-error") << transformers;
      EXPECT_THAT((*run_)->Cell(cell)["message"].get<std::string>(),
                  HasSubstr("'set' object is not subscriptable"));
    }
  }
}

// The values of a critic are judged per token, like log-probs.
TEST_F(AttnImplementationTest, TheCriticsIsHonouredByVerl071AndOverriddenSince) {
  const std::vector<Pair> overridden = {
      {"0.8.0", {"4.57.6", "5.10.2"}}, {"0.9.0", {"5.10.2"}}, {"0.9.1", {"5.10.2"}}};
  for (const std::string attention : {"eager", "sdpa"}) {
    EXPECT_EQ(ReasonOf(At("0.7.1", "4.57.6", attention, "value")), RightReason("0.7.1"));
    for (const Pair& pair : overridden) {
      for (const char* transformers : pair.transformers) {
        const RealRun::Fields cell = At(pair.verl, transformers, attention, "value");
        EXPECT_EQ((*run_)->Cell(cell)["reason"], "override-ignored") << pair.verl;
        EXPECT_THAT((*run_)->Cell(cell)["message"].get<std::string>(),
                    HasSubstr(absl::StrCat("asked for ", attention, ", got flash_attention_2")));
      }
    }
  }
}

// The newest pyarrow in the month of transformers 5.23.0 requires numpy 2, which these releases of
// verl exclude.
TEST_F(AttnImplementationTest, OldPinsMeetNewPackagesAtImport) {
  for (const char* verl : {"0.7.1", "0.8.0"})
    EXPECT_EQ(ReasonOf(At(verl, "5.23.0", "sdpa")), "broken at import, import-failed") << verl;
}

TEST_F(AttnImplementationTest, PinsOfVerl09ExcludeTheOthers) {
  for (const char* verl : {"0.9.0", "0.9.1"}) {
    for (const char* transformers : {"4.57.6", "5.3.0", "5.23.0"}) {
      EXPECT_EQ(ReasonOf(At(verl, transformers, "sdpa")), "broken at resolve, no-solution")
          << verl << " x " << transformers;
    }
  }
}

}  // namespace
}  // namespace bkm
