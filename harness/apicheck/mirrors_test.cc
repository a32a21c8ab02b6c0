// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// The check on the real histories. Runs of these pairs showed whether and where they break.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "harness/apicheck/versions.h"
#include "harness/base/files.h"
#include "harness/model/engine_kind.h"

namespace bkm {
namespace {

class MirrorsTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* mirrors = std::getenv("BKM_GIT_MIRRORS");
    if (!mirrors || !*mirrors) GTEST_SKIP() << "BKM_GIT_MIRRORS names no folder of mirrors";
    const std::filesystem::path cache = std::filesystem::path(testing::TempDir()) / "cache";
    auto tables = SymbolTables::Open("/usr/bin/python3", cache);
    ASSERT_TRUE(tables.ok()) << tables.status();
    tables_ = *std::move(tables);
    versions_ = std::make_unique<Versions>(
        catalog_,
        Versions::Options{.cache = cache, .mirrors = mirrors, .python = "/usr/bin/python3"},
        *tables_);
    const EngineKind& kind = *FindEngineKind("verl-torchtitan");
    check_ = std::make_unique<ApiCheck>(
        *tables_, EngineEntry{kind.entry_modules, kind.entry_class, kind.entry_methods},
        "torchtitan");
  }

  Tree TreeOf(const std::string& text) {
    const auto found = versions_->Find({text});
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? (*found)[0].tree : nullptr;
  }
  PairGrade GradeOf(const std::string& engine, const std::string& library) {
    const auto grade =
        check_->GradeOf(TreeOf("git:verl@" + engine), TreeOf("git:torchtitan@" + library));
    EXPECT_TRUE(grade.ok()) << grade.status();
    return grade.value_or(PairGrade::kUnknown);
  }

  const SourceCatalog catalog_;
  std::unique_ptr<SymbolTables> tables_;
  std::unique_ptr<Versions> versions_;
  std::unique_ptr<ApiCheck> check_;
};

TEST_F(MirrorsTest, PairsThatRanToTheEndAreNotRed) {
  EXPECT_EQ(GradeOf("v0.7.1", "c1465542e"), PairGrade::kNothing);
  EXPECT_EQ(GradeOf("v0.8.0", "baba6d82e"), PairGrade::kNothing);
  EXPECT_EQ(GradeOf("v0.9.0", "952427842"), PairGrade::kNothing);
}

TEST_F(MirrorsTest, PairsThatFailToImportAreRedAtImport) {
  EXPECT_EQ(GradeOf("v0.7.1", "v0.2.2"), PairGrade::kImport);
  EXPECT_EQ(GradeOf("v0.9.0", "baba6d82e"), PairGrade::kImport);
  EXPECT_EQ(GradeOf("v0.8.0", "577533a44"), PairGrade::kImport);
}

TEST_F(MirrorsTest, KeywordsThatAreGoneAreRedAtConstruct) {
  const Tree engine = TreeOf("git:verl@v0.8.0");
  const Tree library = TreeOf("git:torchtitan@632f67f12");
  const auto violations = check_->Check(engine, library);
  ASSERT_TRUE(violations.ok()) << violations.status();
  EXPECT_EQ(
      (*violations)[0],
      (Violation{.grade = Grade::kConstruct,
                 .reason = "unknown-keyword",
                 .engine_file = "verl/workers/engine/torchtitan/transformer_impl.py",
                 .engine_line = 113,
                 .asked = "torchtitan.components.optimizer.OptimizersContainer.Config(beta1=, "
                          "beta2=, eps=, lr=, name=, weight_decay=)",
                 .problem = "has no keyword 'beta1'",
                 .where = "torchtitan/components/optimizer.py:96"}));
}

TEST_F(MirrorsTest, ARangeIsEveryCommitOfItOldestFirst) {
  const auto found = versions_->Find({"git:torchtitan@632f67f12~3..632f67f12"});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->size(), 3u);
  EXPECT_EQ(found->back().label, "632f67f12");
}

}  // namespace
}  // namespace bkm
