// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/runner/observation_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  static Json Observation(Json escapes = Json::array(), bool whole = true) {
    return {{"closure",
             {{"engine", {"verl/a.py"}},
              {"library", {"torchtitan/b.py"}},
              {"lookups", {{"engine", {"verl/a"}}, {"library", {"torchtitan/b"}}}},
              {"asked", Json::object()},
              {"escapes", std::move(escapes)},
              {"whole", whole}}}};
  }
  void Keep(ObservationStore& store, const PreparedCell& cell, const Json& observation) {
    const fs::path dir = root_ / "run" / cell.record.id;
    ASSERT_TRUE(WriteFile(dir / "observation.json", ToText(observation)).ok());
    ASSERT_TRUE(WriteFile(dir / "tensors/step0.safetensors", cell.record.id).ok());
    ASSERT_EQ(store.Keep(cell, observation, dir), absl::OkStatus());
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
  Keep(*store, CellOf("measured", engine_, library_), Observation());
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
  Keep(*store, cell, Observation());
  ASSERT_TRUE(RemoveTree(root_ / "run").ok());
  const KeptObservation kept = **Open()->Find(cell);
  EXPECT_EQ(*ReadFile(kept.folder / "tensors/step0.safetensors"), "measured");
  EXPECT_EQ(*ReadJsonFile(kept.folder / "observation.json"), Observation());
}

TEST_F(ObservationStoreTest, AnotherQuestionCodeLockOrCpuIsNotAnswered) {
  auto store = Open();
  const PreparedCell cell = CellOf("measured", engine_, library_);
  Keep(*store, cell, Observation());
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

TEST_F(ObservationStoreTest, WhatDoesNotTellAllIsNotKept) {
  auto store = Open();
  const PreparedCell cell = CellOf("measured", engine_, library_);
  Keep(*store, cell, Observation({"subprocess.Popen git"}));
  Keep(*store, cell, Observation(Json::array(), /*whole=*/false));
  Keep(*store, cell, Json::object());
  PreparedCell path = cell;  // its tree may change while we run
  path.engine_listing = nullptr;
  Keep(*store, path, Observation());
  PreparedCell gpu = cell;
  gpu.record.cell.probe.device = "cuda";
  Keep(*store, gpu, Observation());
  EXPECT_EQ(Found(*store, cell), "");
  EXPECT_EQ(Found(*store, path), "");
  EXPECT_EQ(Found(*store, gpu), "");
}

TEST_F(ObservationStoreTest, SubjectWithoutATreeIsPartOfTheLock) {
  auto store = Open();
  PreparedCell cell = CellOf("measured", engine_, {});
  cell.library.reset();
  cell.library_listing.reset();
  Keep(*store, cell, {{"closure", {{"engine", {"verl/a.py"}}, {"whole", true}}}});
  EXPECT_EQ(Found(*store, cell), "measured");
}

TEST_F(ObservationStoreTest, ForgottenOrCollectedStandsForNothing) {
  auto store = Open();
  const PreparedCell cell = CellOf("measured", engine_, library_);
  Keep(*store, cell, Observation());
  ASSERT_TRUE(store->Forget(cell).ok());
  EXPECT_EQ(Found(*store, cell), "");
  Keep(*store, cell, Observation());
  EXPECT_EQ(Found(*store, cell), "measured");
  for (const auto& entry : fs::directory_iterator(root_ / "store"))
    if (entry.is_directory()) fs::remove_all(entry.path());
  EXPECT_EQ(Found(*store, cell), "");
}

}  // namespace
}  // namespace bkm
