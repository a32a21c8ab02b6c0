// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// The real `bkm serve`, without Ray: the test is the bkm on the other machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/json_facts.h"
#include "harness/bundle/packed_cells.h"
#include "harness/bundle/part_file.h"
#include "harness/ray/result_files.h"
#include "harness/testing/bkm_under_test.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class ServeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path file = bkm_.folder() / "cells.bkm";
    const ProcessResult packed =
        bkm_.Run({"pack", bkm_.WriteMatrix({"passes"}), "--out", file.string()});
    ASSERT_EQ(packed.exit_code, 0) << packed.err;
    parts_ = std::make_unique<PartFile>(*PartFile::Open(file));
    manifest_ = PackedCells::Read(*parts_)->manifest();
    server_ = *StartPiped(bkm_.MakeCommand({"serve"}), bkm_.folder() / "serve.stderr");
  }
  void TearDown() override {
    server_.to_child.Close();
    int status = 0;
    ::waitpid(server_.pid, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 0) << *ReadFile(bkm_.folder() / "serve.stderr");
    EXPECT_THAT(bkm_.RunningProcesses(), IsEmpty());
  }

  void Say(const Json& message) { WriteAll(server_.to_child.get(), ToLine(message) + "\n"); }
  // The next message that is not a sign of life.
  Json Hear() {
    for (;;) {
      std::string line;
      for (char c = 0; ::read(server_.from_child.get(), &c, 1) == 1 && c != '\n';) line += c;
      const absl::StatusOr<Json> message = ParseJson(line, "serve");
      if (!message.ok()) return {{"type", "nothing"}, {"line", line}};
      if (TextOf(*message, "type") != "alive") return *message;
    }
  }
  Json Greet(const std::string& cell_code) {
    Say({{"type", "hello"}, {"cell_code", cell_code}, {"sandbox", "full"}, {"beat_ms", 100}});
    return Hear();
  }
  // Asks for the cell of the manifest, and gives what the server lacks. Returns its answer, after
  // "started" if it runs.
  Json Ask(int64_t lease, const std::string& key) {
    Say({{"type", "run"},
         {"lease", lease},
         {"key", key},
         {"timeout_s", 30},
         {"manifest", DocumentText(manifest_)}});
    asked_ = 0;
    for (;;) {
      const Json message = Hear();
      const std::string type = TextOf(message, "type");
      if (type == "started") continue;
      if (type != "need") return message;
      Json parts = Json::array();
      for (const Json& part : ListOf(message, "parts"))
        parts.push_back(PartJson(*parts_->Read(part.get<std::string>())));
      asked_ += static_cast<int>(parts.size());
      Say({{"type", "parts"}, {"lease", lease}, {"parts", parts}});
    }
  }
  std::string Key() const {
    const PackedCells cells = *PackedCells::Read(*parts_, DocumentText(manifest_));
    const PackedCell& cell = cells.manifest().cells[0];
    return KeyOf(cells.CellIn(cell, cells.LockOf(cell)),
                 {.cell_code = manifest_.cell_code, .limits = manifest_.limits});
  }

  const BkmUnderTest bkm_;
  std::unique_ptr<PartFile> parts_;
  BundleManifest manifest_;
  PipedProcess server_;
  int asked_ = 0;  // parts of the last cell
};

TEST_F(ServeTest, RunsACellAndAsksForPartsOnce) {
  EXPECT_EQ(Greet(manifest_.cell_code)["type"], "ready");
  const Json first = Ask(1, Key());
  EXPECT_EQ(first["type"], "finished") << first;
  EXPECT_EQ(first["lease"], 1);
  EXPECT_EQ(first["observation"]["ending"]["kind"], "completed");
  EXPECT_TRUE(ResultFilesOf(first["files"]).ok());
  EXPECT_GT(asked_, 0);
  EXPECT_EQ(Ask(2, Key())["type"], "finished");
  EXPECT_EQ(asked_, 0) << "the node has them";
}

TEST_F(ServeTest, RunsControlsRepeatsAndPlantedCells) {
  EXPECT_EQ(Greet(manifest_.cell_code)["type"], "ready");
  CellRecord& record = manifest_.cells[0].record;
  record.role = CellRole::kRepeat;
  record.cell.repeat = 2;
  record.id = CellId(record.cell);
  EXPECT_EQ(Ask(1, Key())["type"], "finished");
  record.role = CellRole::kControl;
  record.cell.plant = {"drop-mask"};
  record.id = CellId(record.cell);
  EXPECT_EQ(Ask(2, Key())["type"], "finished");
}

TEST_F(ServeTest, RefusesAnotherCellCode) {
  const Json answer = Greet(std::string(64, '0'));
  EXPECT_EQ(answer["type"], "unfit");
  EXPECT_THAT(TextOf(answer, "why"), StartsWith("its bkm runs other code in cells ("));
}

TEST_F(ServeTest, RefusesARuntimeThatIsAnotherOneHere) {
  ASSERT_EQ(Greet(manifest_.cell_code)["type"], "ready");
  // The packing machine's interpreter has a package more.
  const PackedCells cells = *PackedCells::Read(*parts_);
  RuntimeLock lock = *cells.LockOf(cells.manifest().cells[0]);
  lock.packages.push_back({.name = "zzz", .version = "1"});
  manifest_.locks = {{lock.Key(), *parts_->Add(ToText(ToJson(lock)))}};
  manifest_.cells[0].record.lock = lock.Key();
  const Json answer = Ask(1, Key());
  EXPECT_EQ(answer["type"], "refused") << answer;
  EXPECT_THAT(TextOf(answer, "why"), HasSubstr(" is another one here: lock "));
}

TEST_F(ServeTest, RefusesACellWithAnotherKey) {
  ASSERT_EQ(Greet(manifest_.cell_code)["type"], "ready");
  const Json answer = Ask(1, std::string(64, 'a'));
  EXPECT_EQ(answer["type"], "refused");
  EXPECT_THAT(TextOf(answer, "why"), StartsWith("this bkm makes another cell of it"));
}

TEST_F(ServeTest, NonsenseEndsNothing) {
  ASSERT_EQ(Greet(manifest_.cell_code)["type"], "ready");
  for (const char* line : {"", "nonsense", "[]", "{\"type\":7}", "{\"type\":\"parts\"}"})
    WriteAll(server_.to_child.get(), absl::StrCat(line, "\n"));
  Say({{"type", "run"}, {"lease", 5}});
  EXPECT_EQ(Hear()["type"], "refused");
  EXPECT_EQ(Ask(6, Key())["type"], "finished");
}

}  // namespace
}  // namespace bkm
