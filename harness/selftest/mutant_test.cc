// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/selftest/mutant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

// x = 1 becomes x = 2.
constexpr char kText[] = "x = 1\n";
const Mutation kMutation = {.party = Party::kLibrary,
                            .file = "torchtitan/m.py",
                            .line = 1,
                            .operation = "change-constant",
                            .start = 4,
                            .end = 5,
                            .replacement = "2"};

class MutantTest : public ::testing::Test {
 protected:
  MutantTest() : folder_(*CreateTempDirectory(::testing::TempDir(), "mutant-")) {}
  ~MutantTest() override { RemoveTree(folder_).IgnoreError(); }

  void Write(const std::string& path, const std::string& text = kText) {
    ASSERT_TRUE(WriteFile(folder_ / path, text).ok());
  }
  std::string Read(const std::string& path) { return ReadFile(folder_ / path).value_or("missing"); }

  PreparedCell Torchtitan() {
    for (const char* file :
         {"torchtitan/m.py", "torchtitan/mm.py", "setup.py",
          "torchtitan/__pycache__/m.cpython-311.pyc", "torchtitan/__pycache__/mm.cpython-311.pyc"})
      Write(std::string("tree/") + file);
    PreparedCell cell;
    cell.record.cell.engine = "torchtitan";
    cell.record.id = CellId(cell.record.cell);
    cell.library = Subject{.tree = folder_ / "tree", .package = "torchtitan", .content = "content"};
    cell.library_listing = std::make_shared<const TreeListing>(std::vector<TreeListing::File>());
    return cell;
  }
  PreparedCell Transformers() {
    const std::string packages = "env/lib/python3.11/site-packages/";
    Write(packages + "transformers/m.py");
    Write(packages + "transformers/n.py");
    Write(packages + "torch/t.py");
    Write("env/bin/tool");
    Write("env/pyvenv.cfg", "home = /usr/bin\n");
    fs::create_symlink("/usr/bin/python3", folder_ / "env/bin/python");
    PreparedCell cell;
    cell.record.cell.engine = "transformers";
    cell.record.id = CellId(cell.record.cell);
    cell.worker = {.key = "lock", .python = folder_ / "env/bin/python"};
    return cell;
  }

  fs::path folder_;
};

TEST_F(MutantTest, OneFileOfACopyIsChanged) {
  const PreparedCell cell = Torchtitan();
  const auto mutant = MakeMutant(cell, kMutation, folder_ / "m");
  ASSERT_TRUE(mutant.ok()) << mutant.status();
  EXPECT_EQ(mutant->library->tree, folder_ / "m");
  EXPECT_EQ(Read("m/torchtitan/m.py"), "x = 2\n");
  EXPECT_EQ(Read("tree/torchtitan/m.py"), kText);
  EXPECT_EQ(Read("m/torchtitan/mm.py"), kText);
  EXPECT_EQ(Read("m/setup.py"), kText);
}

TEST_F(MutantTest, NoCompiledPythonOfTheOriginalIsLeft) {
  const PreparedCell cell = Torchtitan();
  ASSERT_TRUE(MakeMutant(cell, kMutation, folder_ / "m").ok());
  EXPECT_FALSE(fs::exists(folder_ / "m/torchtitan/__pycache__/m.cpython-311.pyc"));
  EXPECT_TRUE(fs::exists(folder_ / "m/torchtitan/__pycache__/mm.cpython-311.pyc"));
  EXPECT_TRUE(fs::exists(folder_ / "tree/torchtitan/__pycache__/m.cpython-311.pyc"));
}

TEST_F(MutantTest, NothingStandsForAMutant) {
  const PreparedCell cell = Torchtitan();
  const auto mutant = MakeMutant(cell, kMutation, folder_ / "m");
  Mutation other = kMutation;
  other.replacement = "3";
  const auto second = MakeMutant(cell, other, folder_ / "other");
  ASSERT_TRUE(mutant.ok() && second.ok());
  EXPECT_THAT(mutant->record.id, ::testing::EndsWith(",plant=" + PlantOf(kMutation)));
  EXPECT_EQ(mutant->library_listing, nullptr);
  EXPECT_NE(mutant->library->content, cell.library->content);
  EXPECT_NE(mutant->record.dir, second->record.dir);
  const Json plain = MakeRequest(cell, "dir", {}), request = MakeRequest(*mutant, "dir", {});
  EXPECT_NE(request["key"], plain["key"]);
  EXPECT_NE(request["key"], MakeRequest(*second, "dir", {})["key"]);
  EXPECT_EQ(request["plant"], Json::array()) << "the worker has nothing to plant";
}

TEST_F(MutantTest, APackageOfTheRuntimeGetsAnEnvironment) {
  const PreparedCell cell = Transformers();
  Mutation mutation = kMutation;
  mutation.file = "transformers/m.py";
  const auto mutant = MakeMutant(cell, mutation, folder_ / "m");
  ASSERT_TRUE(mutant.ok()) << mutant.status();
  const std::string packages = "m/lib/python3.11/site-packages/";
  EXPECT_EQ(Read(packages + "transformers/m.py"), "x = 2\n");
  EXPECT_EQ(Read(packages + "transformers/n.py"), kText);
  EXPECT_EQ(Read(packages + "torch/t.py"), kText);
  EXPECT_EQ(Read("env/lib/python3.11/site-packages/transformers/m.py"), kText);
  EXPECT_EQ(Read("m/pyvenv.cfg"), "home = /usr/bin\n");
  EXPECT_EQ(mutant->worker.python, folder_ / "m/bin/python");
  EXPECT_EQ(fs::read_symlink(mutant->worker.python), "/usr/bin/python3");
  EXPECT_NE(mutant->worker.key, cell.worker.key);
  EXPECT_THAT(mutant->worker.reads, ::testing::ElementsAre(folder_ / "env"));
  EXPECT_NE(MakeRequest(*mutant, "dir", {})["key"], MakeRequest(cell, "dir", {})["key"]);
}

TEST_F(MutantTest, AnAbsentSubjectHasNoFolder) {
  EXPECT_EQ(PackageFolder(Torchtitan(), Party::kEngine).value(), std::nullopt);
}

TEST_F(MutantTest, ARecordingCellAsksForLinesAndIsAnotherCell) {
  const PreparedCell cell = Torchtitan();
  const PreparedCell recording = RecordingCell(cell);
  const Json plain = MakeRequest(cell, "dir", {}), request = MakeRequest(recording, "dir", {});
  EXPECT_EQ(request["record_lines"], true);
  EXPECT_FALSE(plain.contains("record_lines"));
  EXPECT_EQ(request["plant"], Json::array());
  EXPECT_NE(request["key"], plain["key"]);
  EXPECT_NE(recording.record.id, cell.record.id);
}

}  // namespace
}  // namespace bkm
