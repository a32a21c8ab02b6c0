// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/observation_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using Files = std::vector<TreeListing::File>;

class ObservationStoreTest : public ::testing::Test {
 protected:
  ObservationStoreTest() : root_(*CreateTempDirectory(::testing::TempDir(), "kept-")) {}

  std::unique_ptr<ObservationStore> Open(const std::string& code = "code",
                                         const std::string& cpu = "cpu") {
    return *ObservationStore::Open(root_ / "store", {.cell_code = code}, cpu);
  }
  // A cell of two trees. `id` identifies its commits.
  static PreparedCell CellOf(const std::string& id, const Files& engine, const Files& library) {
    PreparedCell cell;
    cell.record.cell.engine = "verl-torchtitan";
    cell.record.cell.probe.attention = "flex";
    cell.record.id = id;
    cell.record.lock = "lock";
    cell.engine = Subject{.package = "verl", .content = id};
    cell.library = Subject{.package = "torchtitan", .content = id};
    cell.engine_listing = std::make_shared<const TreeListing>(engine);
    cell.library_listing = std::make_shared<const TreeListing>(library);
    return cell;
  }
  static Json Observation(const char* kind = "completed") {
    return {{"ending", {{"kind", kind}}},
            {"closure", {{"whole", true}, {"escapes", Json::array()}}}};
  }
  // What the worker saw: verl/a.py and torchtitan/b.py were imported.
  static Json Observed() {
    return {
        {"observer", "fuse"},
        {"version", 1},
        {"complete", true},
        {"engine", {{"read", {"verl/a.py"}}, {"lookups", {"verl/a"}}, {"asked", Json::array()}}},
        {"library",
         {{"read", {"torchtitan/b.py"}}, {"lookups", {"torchtitan/b"}}, {"asked", Json::array()}}}};
  }
  void Keep(ObservationStore& store, const PreparedCell& cell, const Json& observed,
            const Json& observation = Observation()) {
    const fs::path dir = root_ / "run" / cell.record.id;
    ASSERT_TRUE(WriteFile(dir / "observation.json", ToText(observation)).ok());
    ASSERT_TRUE(WriteFile(dir / "tensors/step0.safetensors", cell.record.id).ok());
    ASSERT_EQ(store.Keep(cell, CellFacts::OfReport(observation), observed, dir), absl::OkStatus());
  }
  // The id of the cell whose observation stands for `cell`; "" if there is none.
  static std::string Found(ObservationStore& store, const PreparedCell& cell) {
    const absl::StatusOr<std::optional<KeptObservation>> found = store.Find(cell);
    EXPECT_TRUE(found.ok()) << found.status();
    return *found ? (*found)->cell : "";
  }

  const Files engine_ = {{"verl/a.py", "1"}, {"verl/unused.py", "2"}};
  const Files library_ = {{"torchtitan/b.py", "3"}};
  fs::path root_;
};

TEST_F(ObservationStoreTest, StandsForACommitThatIsTheSameWhereTheCellLooked) {
  auto store = Open();
  Keep(*store, CellOf("measured", engine_, library_), Observed());
  EXPECT_EQ(Found(*store, CellOf("x", {{"verl/a.py", "1"}, {"verl/new.py", "9"}}, library_)),
            "measured");
  EXPECT_EQ(Found(*store, CellOf("x", {{"verl/a.py", "changed"}}, library_)), "");
  EXPECT_EQ(Found(*store, CellOf("x", engine_, {{"torchtitan/b.py", "changed"}})), "");
  EXPECT_EQ(Found(*store, CellOf("x", {{"verl/a.py", "1"}, {"verl/a/__init__.py", "9"}}, library_)),
            "");
}

TEST_F(ObservationStoreTest, KeptFilesAreTheCellsAndOutliveItsRun) {
  auto store = Open();
  const PreparedCell cell = CellOf("measured", engine_, library_);
  Keep(*store, cell, Observed());
  ASSERT_TRUE(RemoveTree(root_ / "run").ok());
  const KeptObservation kept = **Open()->Find(cell);
  EXPECT_EQ(*ReadFile(kept.folder / "tensors/step0.safetensors"), "measured");
  EXPECT_EQ(*ReadJsonFile(kept.folder / "observation.json"), Observation());
}

TEST_F(ObservationStoreTest, AnotherQuestionCodeLockOrCpuIsNotAnswered) {
  auto store = Open();
  const PreparedCell cell = CellOf("measured", engine_, library_);
  Keep(*store, cell, Observed());
  PreparedCell varlen = cell, lock = cell, repeat = cell, planted = cell;
  varlen.record.cell.probe.attention = "varlen";
  lock.record.lock = "another";
  repeat.record.cell.repeat = 2;
  planted.record.cell.plant = {"drop-mask"};
  for (const PreparedCell& other : {varlen, lock, repeat, planted})
    EXPECT_EQ(Found(*store, other), "");
  EXPECT_EQ(Found(*Open("new code"), cell), "");
  EXPECT_EQ(Found(*Open("code", "new cpu"), cell), "");
  EXPECT_EQ(Found(*Open(), cell), "measured");
}

TEST_F(ObservationStoreTest, WithoutAnObserverOnlyEqualTreesCount) {
  const PreparedCell cell = CellOf("measured", engine_, library_);
  Json incomplete = Observed(), unknown = Observed();
  incomplete["complete"] = false;
  unknown["version"] = 2;
  int n = 0;
  for (const Json& observed : {Json(), incomplete, unknown}) {
    auto store = Open(absl::StrCat("code ", ++n));
    Keep(*store, cell, observed);
    EXPECT_EQ(Found(*store, CellOf("equal", engine_, library_)), "measured");
    for (const Files& changed :
         {Files{{"verl/a.py", "1"}, {"verl/unused.py", "changed"}}, Files{{"verl/a.py", "1"}},
          Files{{"verl/a.py", "1"}, {"verl/unused.py", "2*"}}}) {
      EXPECT_EQ(Found(*store, CellOf("x", changed, library_)), "");
    }
    EXPECT_EQ(Found(*store, CellOf("x", engine_, {{"torchtitan/b.py", "changed"}})), "");
  }
}

TEST_F(ObservationStoreTest, WhatACellReportsAboutItselfIsNotUsed) {
  auto store = Open();
  Json forged = Observation();  // says that the cell read nothing
  forged["observed"] = Observed();
  Keep(*store, CellOf("forged", engine_, library_), Json(), forged);
  EXPECT_EQ(Found(*store, CellOf("x", {{"verl/a.py", "changed"}}, library_)), "");
  Json observed = Observed();
  observed["engine"]["read"].push_back("verl/unused.py");
  Keep(*store, CellOf("forged", engine_, library_), observed, forged);
  EXPECT_EQ(Found(*store, CellOf("x", {{"verl/a.py", "1"}}, library_)), "");
}

TEST_F(ObservationStoreTest, WhatMayChangeOrMightHaveEndedOtherwiseIsNotKept) {
  auto store = Open();
  const PreparedCell cell = CellOf("measured", engine_, library_);
  for (const char* kind : {"timed-out", "limit", "cancelled", "lost", "fork-failed", "signalled"})
    Keep(*store, cell, Observed(), Observation(kind));
  Keep(*store, cell, Observed(), Json::object());
  PreparedCell path = cell;  // its tree may change while we run
  path.engine_listing = nullptr;
  Keep(*store, path, Observed());
  PreparedCell gpu = cell;
  gpu.record.cell.probe.device = "cuda";
  Keep(*store, gpu, Observed());
  EXPECT_EQ(Found(*store, cell), "");
  EXPECT_EQ(Found(*store, path), "");
  EXPECT_EQ(Found(*store, gpu), "");
}

TEST_F(ObservationStoreTest, DamagedObservationIsSetAsideAndStandsForNothing) {
  const PreparedCell cell = CellOf("measured", engine_, library_);
  for (const char* damaged : {"cell/observation.json", "cell/tensors/step0.safetensors",
                              "about.json", "manifest.sha256"}) {
    for (const bool remove : {false, true}) {
      auto store = Open(absl::StrCat(damaged, remove));
      Keep(*store, cell, Observed());
      const fs::path folder = (**store->Find(cell)).folder.parent_path();
      if (remove) {
        fs::remove(folder / damaged);
      } else {
        fs::path file = folder / damaged;
        std::string content = *ReadFile(file);
        content[content.size() / 2] ^= 1;
        fs::remove(file);  // the run directory has a link to it
        ASSERT_TRUE(WriteFile(file, content).ok());
      }
      EXPECT_EQ(Found(*store, cell), "") << damaged;
      EXPECT_FALSE(fs::exists(folder));
      Keep(*store, cell, Observed());
      EXPECT_EQ(Found(*store, cell), "measured") << damaged;
    }
  }
}

TEST_F(ObservationStoreTest, DiscardedStandsForNothingAndANewOneCanTakeItsPlace) {
  auto store = Open();
  const PreparedCell cell = CellOf("measured", engine_, library_);
  Keep(*store, cell, Observed());
  ASSERT_TRUE(store->Discard(**store->Find(cell)).ok());
  EXPECT_EQ(Found(*store, cell), "");
  const PreparedCell again = CellOf("again", engine_, library_);
  Keep(*store, again, Observed());
  EXPECT_EQ(Found(*store, cell), "again");
}

TEST_F(ObservationStoreTest, EntriesOfAnEarlierRuleLoadAndStandForNothing) {
  {
    ResultIndex index = *ResultIndex::Open(root_ / "store/index.sqlite");
    ASSERT_TRUE(
        index.Put("key", R"({"engine":{"asked":[],"lookups":[],"read":[]}})", "state", "f").ok());
  }
  auto store = Open();
  const PreparedCell cell = CellOf("measured", engine_, library_);
  EXPECT_EQ(Found(*store, cell), "");
  Keep(*store, cell, Observed());
  EXPECT_EQ(Found(*store, cell), "measured");
}

TEST_F(ObservationStoreTest, SubjectWithoutATreeIsPartOfTheLock) {
  auto store = Open();
  PreparedCell cell = CellOf("measured", engine_, {});
  cell.library.reset();
  cell.library_listing.reset();
  Json observed = Observed();
  observed.erase("library");
  Keep(*store, cell, observed);
  EXPECT_EQ(Found(*store, cell), "measured");
}

TEST_F(ObservationStoreTest, ForgottenOrCollectedStandsForNothing) {
  auto store = Open();
  const PreparedCell cell = CellOf("measured", engine_, library_);
  Keep(*store, cell, Observed());
  ASSERT_TRUE(store->Forget(cell).ok());
  EXPECT_EQ(Found(*store, cell), "");
  Keep(*store, cell, Observed());
  EXPECT_EQ(Found(*store, cell), "measured");
  for (const auto& entry : fs::directory_iterator(root_ / "store"))
    if (entry.is_directory()) fs::remove_all(entry.path());
  EXPECT_EQ(Found(*store, cell), "");
}

}  // namespace
}  // namespace bkm
