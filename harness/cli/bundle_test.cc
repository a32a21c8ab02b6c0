// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// bkm pack, work and unpack: the results of another machine are those of a local run, and nothing
// else gets into a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <map>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/bundle/manifest.h"
#include "harness/bundle/packed_cells.h"
#include "harness/bundle/part_file.h"
#include "harness/runner/measured_on.h"
#include "harness/testing/bkm_under_test.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kPython[] = "/usr/bin/python3";  // of the runtime "bare"

// Without what two runs of one cell need not have in common: times and memory.
Json Repeatable(Json json) {
  if (json.is_object()) {
    for (const char* key : {"measured", "rss_mib", "seconds", "usage"}) json.erase(key);
  }
  if (json.is_structured()) {
    for (Json& item : json) item = Repeatable(std::move(item));
  }
  return json;
}

// The files below a folder, by content.
std::map<std::string, std::string> Snapshot(const fs::path& folder) {
  std::map<std::string, std::string> files;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (entry.is_regular_file()) files[entry.path().string()] = Sha256(*ReadFile(entry.path()));
  }
  return files;
}

class BundleTest : public ::testing::Test {
 protected:
  fs::path Cells() const { return bkm_.folder() / "cells.bkm"; }
  fs::path Results() const { return bkm_.folder() / "results.bkm"; }

  void Pack(const fs::path& cells) const {
    const ProcessResult result = bkm_.Run({"pack", cells, "--out", Cells()});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  ProcessResult Work(std::vector<std::string> more = {"--python", kPython}) const {
    more.insert(more.begin(), {"work", Cells(), "--out", Results()});
    return bkm_.Run(std::move(more));
  }
  ProcessResult Unpack(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"unpack", Results(), bkm_.out()});
    return bkm_.Run(std::move(more));
  }
  // "ran", "known" and so on of the next bkm work.
  Json WorkJson() const { return *ParseJson(Work({"--python", kPython, "--json"}).out, "work"); }
  std::map<std::string, std::string> ResultParts() const {
    return *PartFile::OpenForReading(Results())->Named(kResultPrefix);
  }

  const BkmUnderTest bkm_;
};

// A matrix of one pair, on the CPU and on a GPU.
class GpuBundleTest : public BundleTest {
 protected:
  GpuBundleTest() : matrix_(bkm_.WriteMatrix({"passes"})) {
    Json json = *ReadJsonFile(matrix_);
    json["groups"][0]["probe"]["device"] = {"cpu", "cuda"};
    EXPECT_TRUE(WriteFile(matrix_, ToText(json)).ok());
  }
  // Whatever this machine has.
  static std::map<std::string, std::string> WithoutGpu() { return {{"CUDA_VISIBLE_DEVICES", ""}}; }

  // "VERDICT: MESSAGE" of the cell on that device.
  std::string VerdictOn(const std::string& device) const {
    const Json run = bkm_.ReadRun();
    for (const Json& cell : run["cells"]) {
      if (cell["probe"].value("device", "cpu") == device) {
        return absl::StrCat(cell["verdict"].get<std::string>(), ": ",
                            cell["message"].get<std::string>());
      }
    }
    return "no such cell";
  }

  const fs::path matrix_;
};

TEST_F(GpuBundleTest, ACellForAGpuRunsOnlyWhereThereIsOne) {
  bkm_.Run({"run", matrix_, "--no-store"}, WithoutGpu());
  EXPECT_THAT(VerdictOn("cpu"), StartsWith("ok"));
  EXPECT_THAT(VerdictOn("cuda"),
              "unsupported: it asks for a CUDA device, and this machine has none (bkm pack writes "
              "it for a machine that has one)");
  bkm_.Run({"run", matrix_, "--no-store"}, bkm_.EnvironmentWithGpu());
  EXPECT_THAT(VerdictOn("cuda"), StartsWith("ok"));
}

TEST_F(GpuBundleTest, APackedCellForAGpuRunsOnAnotherMachine) {
  Pack(matrix_);
  const auto work = [&](const std::map<std::string, std::string>& machine) {
    return bkm_.Run({"work", Cells(), "--out", Results(), "--python", kPython}, machine);
  };
  const ProcessResult without = work(WithoutGpu());
  EXPECT_THAT(without.out, StartsWith("1 of 2 cells ran, 0 had a result, 1 cannot run here\n"));
  EXPECT_THAT(without.err, HasSubstr("it asks for a CUDA device, and this machine has none"));
  const ProcessResult with = work(bkm_.EnvironmentWithGpu());
  EXPECT_EQ(with.exit_code, 0) << with.err;
  EXPECT_THAT(with.out, AllOf(StartsWith("1 of 2 cells ran, 1 had a result, 0 cannot run here\n"),
                              HasSubstr("\nGPUs: NVIDIA H100, driver 550.54\n")));
  EXPECT_EQ(Unpack().exit_code, 0);
  EXPECT_THAT(VerdictOn("cuda"), StartsWith("ok"));
}

TEST_F(BundleTest, ResultsFromElsewhereEqualThoseOfARun) {
  const fs::path matrix = bkm_.WriteMatrix({"passes", "refuses", "import_raises", "exits"});
  ASSERT_EQ(bkm_.Run({"run", matrix, "--no-store"}).exit_code, 0);
  const fs::path local = bkm_.folder() / "local";
  fs::rename(bkm_.out(), local);
  const Json local_run = *ReadJsonFile(local / "run.json");
  Pack(matrix);

  // Without git and anything else that PATH would find.
  const ProcessResult work =
      bkm_.Run({"work", Cells(), "--out", Results(), "--python", kPython}, {{"PATH", "/nowhere"}});
  EXPECT_EQ(work.exit_code, 0) << work.err;
  EXPECT_THAT(work.out, StartsWith("4 of 4 cells ran, 0 had a result, 0 cannot run here\n"));
  EXPECT_FALSE(fs::exists(Results().string() + ".work"));
  const ProcessResult unpacked = Unpack();
  EXPECT_EQ(unpacked.exit_code, 0) << unpacked.err;
  EXPECT_THAT(unpacked.out, AllOf(HasSubstr("\n4 results unpacked, 0 were there\n"),
                                  HasSubstr("\nMeasured on ")));

  const Json run = bkm_.ReadRun();
  EXPECT_EQ(Difference(StableRun(bkm_, local_run), StableRun(bkm_, run)), "");
  EXPECT_EQ(run["made_by"]["machines"][0]["sandbox"], "full");
  EXPECT_EQ(run["made_by"]["machines"][0]["python"], "3.11");
  EXPECT_NE(run["made_by"]["machines"][0]["cpu"], "");
  for (const Json& cell : run["cells"]) {
    const std::string dir = cell["dir"];
    EXPECT_EQ(*ReadJsonFile(bkm_.out() / dir / "machine.json"), run["made_by"]["machines"][0]);
    for (const char* file : {"observation.json", "observed.json"}) {
      EXPECT_EQ(Difference(Repeatable(*ReadJsonFile(local / dir / file)),
                           Repeatable(*ReadJsonFile(bkm_.out() / dir / file))),
                "")
          << dir << " " << file;
    }
    EXPECT_EQ(*ReadFile(local / dir / "stdout"), *ReadFile(bkm_.out() / dir / "stdout"));
    EXPECT_EQ((*ReadJsonFile(local / dir / "request.json"))["key"],
              (*ReadJsonFile(bkm_.out() / dir / "request.json"))["key"]);
  }
  const std::string cell = run["cells"][0]["id"];
  EXPECT_THAT(bkm_.Run({"explain", bkm_.out(), cell}).out,
              AllOf(HasSubstr("\nMeasured on another machine: "), HasSubstr(", sandbox full, "),
                    Not(HasSubstr("\nAgain: "))));
  const Json explained = *ParseJson(bkm_.Run({"explain", bkm_.out(), cell, "--json"}).out, "");
  EXPECT_EQ(explained["measured_on"], run["made_by"]["machines"][0]);
  // A run takes the results for its own.
  const ProcessResult again = bkm_.Run({"run", matrix, "--no-store"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, AllOf(HasSubstr("[4/4]"), Not(HasSubstr(" s)"))));
}

TEST_F(BundleTest, ARunIsPackedWithItsOwnLocksAndFilters) {
  const fs::path matrix = bkm_.WriteMatrix({"passes", "refuses"});
  Pack(matrix);
  const std::string whole = *PartFile::OpenForReading(Cells())->PartOf(kManifestName);
  ASSERT_EQ(bkm_.Run({"run", matrix}).exit_code, 0);
  Pack(bkm_.out());
  EXPECT_EQ(*PartFile::OpenForReading(Cells())->PartOf(kManifestName), whole);

  const ProcessResult one =
      bkm_.Run({"pack", bkm_.out(), "--filter", "engine=*passes*", "--out", Cells(), "--json"});
  EXPECT_EQ((*ParseJson(one.out, "pack"))["cells"], 1) << one.err;
}

TEST_F(BundleTest, UnpackingTwiceChangesNothing) {
  Pack(bkm_.WriteMatrix({"passes"}));
  ASSERT_EQ(Work().exit_code, 0);
  ASSERT_EQ(Unpack().exit_code, 0);
  const fs::path cell = bkm_.CellFolder("passes");
  const auto before = Snapshot(cell);
  const ProcessResult again = Unpack();
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("0 results unpacked, 1 were there"));
  EXPECT_EQ(Snapshot(cell), before);
  EXPECT_THAT(bkm_.Run({"replay", bkm_.out(), "engine=*passes*"}).err,
              HasSubstr("another machine measured this cell"));
}

TEST_F(BundleTest, WhatCannotRunIsToldAndRunsLater) {
  Pack(bkm_.WriteMatrix({"passes", "refuses"}));
  const ProcessResult nothing = Work({"--quiet"});
  EXPECT_EQ(nothing.exit_code, 1);
  EXPECT_THAT(nothing.err,
              HasSubstr("its runtime bare is an interpreter of the machine that packed it: name "
                        "one with --python\n"));
  const ProcessResult unpacked = Unpack();
  EXPECT_EQ(unpacked.exit_code, 1);
  EXPECT_FALSE(fs::exists(bkm_.out()));
  EXPECT_THAT(unpacked.out, AllOf(Not(HasSubstr("No result:")),
                                  HasSubstr("That machine cannot run engine=fixture@"),
                                  HasSubstr(" and 1 other cell: its runtime bare is")));

  EXPECT_EQ(WorkJson()["ran"], 2);
  EXPECT_EQ(WorkJson()["known"], 2);
  const ProcessResult whole = Unpack();
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_THAT(whole.out, Not(HasSubstr("cannot run")));
}

TEST_F(BundleTest, AnInterpreterThatIsNoneIsToldAtOnce) {
  Pack(bkm_.WriteMatrix({"passes"}));
  const ProcessResult result = Work({"--python", "/no/python"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(StartsWith("bkm: "), HasSubstr("/no/python")));
  EXPECT_FALSE(fs::exists(Results()));
}

TEST_F(BundleTest, TheSameCommandContinuesAfterAKill) {
  bkm_.WritePair("slow", "import time\ntime.sleep(4)\n");
  Pack(bkm_.WriteMatrix({"passes", "refuses", "slow"}));
  const PipedProcess process = *StartPiped(
      bkm_.MakeCommand({"work", Cells(), "--out", Results(), "--python", kPython, "--jobs", "1"}),
      bkm_.folder() / "stderr");
  const auto results = [&]() -> size_t {
    const absl::StatusOr<PartFile> file = PartFile::OpenForReading(Results());
    const auto named = file.ok()
                           ? file->Named(kResultPrefix)
                           : absl::StatusOr<std::map<std::string, std::string>>(file.status());
    return named.ok() ? named->size() : 0;
  };
  for (int i = 0; i < 600 && results() < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ::kill(process.pid, SIGKILL);
  int status = 0;
  while (::waitpid(process.pid, &status, 0) < 0 && errno == EINTR) {
  }
  ASSERT_TRUE(WIFSIGNALED(status)) << "all cells had ended: " << status;
  for (int i = 0; i < 600 && !bkm_.RunningProcesses().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_THAT(bkm_.RunningProcesses(), IsEmpty());
  const auto before = ResultParts();
  ASSERT_EQ(before.size(), 2u);

  const Json rest = WorkJson();
  EXPECT_EQ(rest["known"], 2);
  EXPECT_EQ(rest["ran"], 1);
  for (const auto& [key, part] : before) EXPECT_EQ(ResultParts()[key], part);
  EXPECT_EQ(Unpack().exit_code, 0);
}

// What one subject leaves behind must not spoil the results of the others.
TEST_F(BundleTest, FilesThatNoObservationNamesStayBehind) {
  bkm_.WritePair("litters", R"(
import os
tensors = os.path.join(os.path.dirname(os.getcwd()), "tensors")
for name in ("a\nb", "sound", "\udc80"):
    with open(os.path.join(tensors, name), "w") as file:
        file.write("x")
os.symlink("/etc/passwd", os.path.join(tensors, "link"))
os.mkdir(os.path.join(tensors, "folder"))
)");
  Pack(bkm_.WriteMatrix({"litters", "passes"}));
  ASSERT_EQ(Work().exit_code, 0);
  const ProcessResult unpacked = Unpack();
  EXPECT_EQ(unpacked.exit_code, 0) << unpacked.err;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(bkm_.CellFolder("litters") / "tensors"))
    names.push_back(entry.path().filename());
  EXPECT_THAT(names, ::testing::ElementsAre("sound"));
}

TEST_F(BundleTest, ResultsGetAFileOfTheirOwn) {
  Pack(bkm_.WriteMatrix({"passes"}));
  const std::string before = *ReadFile(Cells());
  const ProcessResult result = bkm_.Run({"work", Cells(), "--out", Cells()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("is the file of the cells: name another"));
  EXPECT_EQ(*ReadFile(Cells()), before);
}

TEST_F(BundleTest, ResultsOfAnotherBundleAreNotMixed) {
  Pack(bkm_.WriteMatrix({"passes"}));
  ASSERT_EQ(Work().exit_code, 0);
  Pack(bkm_.WriteMatrix({"refuses"}));
  const ProcessResult result = Work();
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(bkm_.WithoutPaths(result.err),
            "bkm: FOLDER/results.bkm holds results of another bundle: name another file with "
            "--out\n");
}

using ShardStoryTest = BundleTest;

TEST_F(ShardStoryTest, MergedShardsAreTheWholeRun) {
  const fs::path matrix =
      bkm_.WriteMatrix({"passes", "refuses", "import_raises", "exits", "segfaults"});
  const auto run = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.begin(), {"run", matrix, "--no-store"});
    const ProcessResult result = bkm_.Run(std::move(more));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    fs::rename(bkm_.out(), bkm_.folder() / name);
    return bkm_.folder() / name;
  };
  const fs::path whole = run("whole", {});
  const fs::path one = run("one", {"--shard", "1/2"}), two = run("two", {"--shard", "2/2"});

  const ProcessResult alone = bkm_.Run({"merge", one, "--out", bkm_.out()});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_EQ(alone.err, "bkm: cells are missing: name the run of shard 2/2\n");
  const ProcessResult merged = bkm_.Run({"merge", two, one, "--out", bkm_.out()});
  EXPECT_EQ(merged.exit_code, 0) << merged.err;

  EXPECT_EQ(Difference(StableRun(bkm_, *ReadJsonFile(whole / "run.json")),
                       StableRun(bkm_, bkm_.ReadRun())),
            "");
  const ProcessResult again = bkm_.Run({"run", matrix, "--no-store"});
  EXPECT_THAT(again.err, AllOf(HasSubstr("[5/5]"), Not(HasSubstr(" s)"))));
  EXPECT_EQ(bkm_.Run({"run", matrix, "--shard", "3/2"}).err,
            "bkm: --shard 3/2: write i/n with 1 <= i <= n, for example 2/3\n");
}

// A run of two cells, and results that someone has changed.
class ForgedResultsTest : public BundleTest {
 protected:
  void SetUp() override {
    const fs::path matrix = bkm_.WriteMatrix({"passes", "refuses"});
    ASSERT_EQ(bkm_.Run({"run", matrix}).exit_code, 0);
    Pack(matrix);
    ASSERT_EQ(Work().exit_code, 0);
    before_ = Snapshot(bkm_.out());
  }

  // The sentence of an unpack that must be refused.
  std::string Refusal(std::vector<std::string> more = {}) {
    const ProcessResult result = Unpack(std::move(more));
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(Snapshot(bkm_.out()), before_);
    for (const auto& entry : fs::directory_iterator(bkm_.folder()))
      EXPECT_FALSE(absl::StartsWith(entry.path().filename().string(), ".bkm-")) << entry.path();
    EXPECT_THAT(result.err, AllOf(StartsWith("bkm: "), EndsWith("\n")));
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
    return bkm_.WithoutPaths(result.err);
  }
  // Writes the result `key` anew, as `change` makes it.
  void Change(const std::string& key, const std::function<void(CellResult&)>& change) {
    PartFile file = *PartFile::Open(Results());
    CellResult result =
        *ReadCellResult(*file.Read(*file.PartOf(absl::StrCat(kResultPrefix, key))), "result");
    change(result);
    ASSERT_TRUE(
        file.SetName(absl::StrCat(kResultPrefix, key), *file.Add(DocumentText(result))).ok());
  }
  // Changes the observation of the result `key`.
  void ChangeObservation(const std::string& key, const std::function<void(Json&)>& change) {
    Change(key, [&](CellResult& result) {
      PartFile file = *PartFile::Open(Results());
      for (ResultFile& each : result.files) {
        if (each.path != "observation.json") continue;
        Json observation = *ParseJson(*file.Read(each.part), "observation");
        change(observation);
        each.part = *file.Add(ToText(observation));
      }
    });
  }
  std::string FirstKey() const { return ResultParts().begin()->first; }

  std::map<std::string, std::string> before_;
};

TEST_F(ForgedResultsTest, TruncatedOrDamagedFile) {
  const std::string whole = *ReadFile(Results());
  fs::resize_file(Results(), whole.size() / 2);
  EXPECT_THAT(Refusal(), StartsWith("bkm: FOLDER/results.bkm"));
  ASSERT_TRUE(WriteFile(Results(), "").ok());
  EXPECT_THAT(Refusal(), HasSubstr("damaged or was made by another program"));
  fs::remove(Results());
  EXPECT_EQ(Refusal(), "bkm: FOLDER/results.bkm is not a file\n");
}

TEST_F(ForgedResultsTest, PartThatIsNotWhatItsHashSays) {
  const Database database = *Database::Open({.path = Results(),
                                             .wait = std::chrono::seconds(1),
                                             .application_id = 0x626b6d62,
                                             .travels = true});
  const std::string result = ResultParts().begin()->second;
  ASSERT_TRUE(
      database
          .Run("UPDATE part SET content = CAST('{}' AS BLOB), bytes = 2 WHERE sha256 = ?", {result})
          .ok());
  EXPECT_THAT(Refusal(), HasSubstr(absl::StrCat("the part ", result, " is damaged")));
}

TEST_F(ForgedResultsTest, ResultUnderTheKeyOfAnotherCell) {
  const auto parts = ResultParts();
  PartFile file = *PartFile::Open(Results());
  ASSERT_TRUE(
      file.SetName(absl::StrCat(kResultPrefix, parts.begin()->first), parts.rbegin()->second).ok());
  EXPECT_THAT(Refusal(), HasSubstr(absl::StrCat("the result ", parts.begin()->first,
                                                " does not have the key of ")));
}

TEST_F(ForgedResultsTest, ResultOfACellThatWasNotPacked) {
  Change(FirstKey(), [](CellResult& result) { result.cell = "engine=another"; });
  EXPECT_THAT(Refusal(), HasSubstr("is of a cell that the bundle does not have"));
}

TEST_F(ForgedResultsTest, MachineThatRanOtherCode) {
  Change(FirstKey(), [&](CellResult& result) {
    PartFile file = *PartFile::Open(Results());
    WorkMachine machine = *ReadDocument<WorkMachine>(*file.Read(result.machine), "machine");
    machine.cell_code = Sha256("other code");
    result.machine = *file.Add(DocumentText(machine));
  });
  EXPECT_THAT(Refusal(), HasSubstr("does not have the key of "));
}

TEST_F(ForgedResultsTest, RuntimeThatWasNotTheCells) {
  Change(FirstKey(), [&](CellResult& result) {
    PartFile file = *PartFile::Open(Results());
    RuntimeLock lock = *ReadPackedLock(*file.Read(result.lock), "lock");
    lock.packages.push_back({"forged", "1", {}});
    result.lock = *file.Add(ToText(ToJson(lock)));
  });
  EXPECT_THAT(Refusal(), HasSubstr("does not have the key of "));
  Change(FirstKey(), [&](CellResult& result) {
    PartFile file = *PartFile::Open(Results());
    RuntimeLock lock = *ReadPackedLock(*file.Read(result.lock), "lock");
    lock.policy = "newest";
    for (LockedPackage& package : lock.packages) package.version = "1";
    result.lock = *file.Add(ToText(ToJson(lock)));
  });
  EXPECT_THAT(Refusal(), HasSubstr("has a lock that was not packed"));
}

TEST_F(ForgedResultsTest, ObservationThatNoCellCanGive) {
  ChangeObservation(FirstKey(), [](Json& observation) { observation["stages"] = "all"; });
  EXPECT_THAT(Refusal(), HasSubstr("has an observation that no cell of this bkm can give"));
  ChangeObservation(FirstKey(), [](Json& observation) { observation.clear(); });
  EXPECT_THAT(Refusal(), HasSubstr("has an observation that no cell of this bkm can give"));
}

TEST_F(ForgedResultsTest, FileOutsideOfTheCellsFolder) {
  Change(FirstKey(), [](CellResult& result) { result.files[0].path = "../../../run.json"; });
  EXPECT_THAT(Refusal(), HasSubstr("a cell's folder has no file ../../../run.json"));
}

TEST_F(ForgedResultsTest, DocumentOfANewerBkm) {
  PartFile file = *PartFile::Open(Results());
  ASSERT_TRUE(file.SetName(kManifestName, *file.Add(R"({"schema": 7})")).ok());
  EXPECT_THAT(Refusal(), HasSubstr("this bkm knows schema 1 only, not 7"));
}

TEST_F(ForgedResultsTest, BundleOfAnotherMachineNeedsItsFile) {
  fs::remove_all(bkm_.folder() / "cache/bundles");
  EXPECT_THAT(Refusal(), EndsWith("which was not packed on this machine: name its file with "
                                  "--bundle\n"));
  const fs::path mine = bkm_.folder() / "mine.bkm";
  fs::rename(Cells(), mine);
  Pack(bkm_.WriteMatrix({"exits"}));
  EXPECT_THAT(Refusal({"--bundle", Cells()}), HasSubstr("FOLDER/cells.bkm is the bundle "));
  const ProcessResult named = Unpack({"--bundle", mine});
  EXPECT_EQ(named.exit_code, 0) << named.err;
}

TEST_F(ForgedResultsTest, RunOfAnotherMatrixOrFolder) {
  const std::string run = *ReadFile(bkm_.out() / "run.json");
  ASSERT_TRUE(
      WriteFile(bkm_.out() / "run.json", absl::StrReplaceAll(run, {{"\"chosen\"", "\"other\""}}))
          .ok());
  before_ = Snapshot(bkm_.out());
  EXPECT_THAT(Refusal(), HasSubstr("is a run of the matrix other, and the results are of chosen"));
  fs::remove(bkm_.out() / "run.json");
  before_ = Snapshot(bkm_.out());
  EXPECT_THAT(Refusal(), HasSubstr("is not a run directory"));
}

}  // namespace
}  // namespace bkm
