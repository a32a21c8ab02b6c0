// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Interrupted and damaged runs: no result is lost, and nothing is measured twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <map>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/testing/bkm_under_test.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Waits while the file `hold` exists in its tree.
constexpr char kHolds[] = R"(
import os, time
while os.path.exists(os.path.join(os.path.dirname(os.path.dirname(__file__)), "hold")):
    time.sleep(0.05)
)";

ino_t Inode(const fs::path& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

// The folder of the one cell below `out` whose request names `behaviour`; empty when there is none.
fs::path FindCellFolder(const fs::path& out, const std::string& behaviour) {
  std::error_code error;
  for (const fs::directory_entry& cell : fs::directory_iterator(out / "cells", error)) {
    const absl::StatusOr<std::string> request = ReadFile(cell.path() / "request.json");
    if (request.ok() && absl::StrContains(*request, absl::StrCat("/", behaviour, "/engine")))
      return cell.path();
  }
  return "";
}

template <typename F>
bool Eventually(F condition) {
  for (int i = 0; i < 600; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

// The exit code of `process`, or minus the signal that ended it.
int WaitFor(const PipedProcess& process) {
  int status = 0;
  while (::waitpid(process.pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

class InterruptTest : public ::testing::TestWithParam<int> {};

TEST_P(InterruptTest, KeepsWhatWasMeasuredAndTheSameCommandFinishesTheRest) {
  const BkmUnderTest bkm;
  bkm.WritePair("holds", kHolds);
  const fs::path hold = bkm.packages() / "holds/engine/hold";
  ASSERT_TRUE(WriteFile(hold, "").ok());
  const fs::path matrix = bkm.WriteMatrix({"passes", "holds", "refuses", "exits"}, 120);
  const Command command = bkm.MakeCommand({"run", matrix, "--quiet"});
  const PipedProcess process = *StartPiped(command, bkm.folder() / "stderr");
  ASSERT_TRUE(Eventually([&] {
    return !FindCellFolder(bkm.out(), "holds").empty() &&
           Inode(FindCellFolder(bkm.out(), "exits") / "observation.json") != 0;
  }));

  ::kill(process.pid, GetParam());
  const int exit_code = WaitFor(process);

  EXPECT_EQ(exit_code, 3);
  EXPECT_EQ(*ReadFile(bkm.folder() / "stderr"),
            "bkm: interrupted; run the same command to finish\n");
  EXPECT_THAT(bkm.RunningProcesses(), IsEmpty());
  const Json partial = bkm.ReadRun();
  EXPECT_EQ(partial["finished"], false);
  EXPECT_EQ(partial["counts"], (Json{{"ok", 1}, {"broken", 1}, {"refused", 1}, {"pending", 1}}));
  EXPECT_EQ(bkm.CellOf(partial, "holds")["verdict"], Json());
  std::map<std::string, ino_t> measured;
  for (const char* behaviour : {"passes", "refuses", "exits"})
    measured[behaviour] = Inode(bkm.CellFolder(behaviour) / "observation.json");

  fs::remove(hold);
  const ProcessResult rest = bkm.Run({"run", matrix});

  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(rest.err, HasSubstr("(reused)"));
  const Json whole = bkm.ReadRun();
  EXPECT_EQ(whole["finished"], true);
  EXPECT_EQ(whole["counts"], (Json{{"ok", 2}, {"broken", 1}, {"refused", 1}}));
  for (const auto& [behaviour, inode] : measured)
    EXPECT_EQ(Inode(bkm.CellFolder(behaviour) / "observation.json"), inode) << behaviour;
}

INSTANTIATE_TEST_SUITE_P(Signals, InterruptTest, ::testing::Values(SIGINT, SIGTERM),
                         [](const auto& info) { return info.param == SIGINT ? "Int" : "Term"; });

// A run of two cells; the tests damage the first cell afterwards.
class DamagedRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    matrix_ = bkm_.WriteMatrix({"refuses", "exits"});
    const ProcessResult result = bkm_.Run({"run", matrix_});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  void Damage(const std::string& file, const std::string& content) {
    ASSERT_TRUE(WriteFile(bkm_.CellFolder("refuses") / file, content).ok());
  }

  const BkmUnderTest bkm_;
  fs::path matrix_;
};

TEST_F(DamagedRunTest, ObservationThatCannotBeReadIsThatCellsMatterAlone) {
  for (const char* content : {"{\"schema\": 1, \"endi", "[1, 2]", "{\"ending\": 3}", ""}) {
    Damage("observation.json", content);

    const ProcessResult judged = bkm_.Run({"judge", bkm_.out(), "--json"});

    EXPECT_EQ(judged.exit_code, 0) << content << judged.err;
    const Json run = *ParseJson(judged.out, "judge");
    const Json cell = bkm_.CellOf(run, "refuses");
    EXPECT_EQ(cell["verdict"], "unsupported") << content;
    EXPECT_EQ(cell["reason"], "evidence-unreadable") << content;
    EXPECT_EQ(cell["blame"], Json({"harness"})) << content;
    EXPECT_THAT(cell["message"].get<std::string>(), HasSubstr("observation.json")) << content;
    EXPECT_EQ(bkm_.CellOf(run, "exits")["reason"], "exited") << content;
  }
}

TEST_F(DamagedRunTest, TheSameRunMeasuresADamagedCellAgainAndNoOther) {
  const Json before = bkm_.ReadRun();
  for (const char* file : {"observation.json", "request.json"}) {
    for (const char* content : {"{\"schema\": 1, \"endi", "[1, 2]", "{\"ending\": 3}"}) {
      Damage(file, content);
      const ino_t other = Inode(bkm_.CellFolder("exits") / "observation.json");

      const ProcessResult again = bkm_.Run({"run", matrix_});

      EXPECT_EQ(again.exit_code, 0) << file << content << again.err;
      EXPECT_EQ(Difference(StableRun(bkm_, before), StableRun(bkm_, bkm_.ReadRun())), "")
          << file << content;
      EXPECT_EQ(Inode(bkm_.CellFolder("exits") / "observation.json"), other);
    }
  }
}

TEST_F(DamagedRunTest, RunJsonThatIsLostIsMadeAgainFromTheCells) {
  const Json before = bkm_.ReadRun();
  const ino_t cell = Inode(bkm_.CellFolder("exits") / "observation.json");
  ASSERT_TRUE(WriteFile(bkm_.out() / "run.json", "{\"schema\"").ok());
  const ProcessResult judged = bkm_.Run({"judge", bkm_.out()});
  EXPECT_EQ(judged.exit_code, 2);
  EXPECT_EQ(bkm_.WithoutPaths(judged.err),
            "bkm: FOLDER/out/run.json: not JSON at line 1, column 10 (a missing or surplus comma, "
            "quote or brace?)\n");

  const ProcessResult again = bkm_.Run({"run", matrix_});

  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(Difference(before["cells"], bkm_.ReadRun()["cells"]), "");
  EXPECT_EQ(Inode(bkm_.CellFolder("exits") / "observation.json"), cell);
}

TEST_F(DamagedRunTest, ReplayOfASubjectThatIsGoneNamesIt) {
  fs::remove_all(bkm_.packages() / "exits");

  const ProcessResult replayed = bkm_.Run({"replay", bkm_.out(), "engine=*exits*"});

  EXPECT_EQ(replayed.exit_code, 2);
  EXPECT_EQ(bkm_.WithoutPaths(replayed.err),
            "bkm: path:FOLDER/fixtures/packages/exits/engine: no such folder\n");
}

TEST_F(DamagedRunTest, ReplayTakesNoPathOfARequest) {
  const fs::path secret = bkm_.folder() / "secret";
  ASSERT_TRUE(CreateDirectories(secret).ok());
  ASSERT_TRUE(WriteFile(secret / "key", "private").ok());
  const fs::path cell = bkm_.CellFolder("refuses");
  const Json before = *ReadJsonFile(cell / "request.json");
  Json changed = before;
  changed["paths"] = {{"engine", secret}, {"library", secret}};
  for (const char* key : {"probe_dir", "python", "dir", "bytecode"}) changed[key] = secret;
  changed["sandbox"] = "off";
  changed["alone"] = true;
  ASSERT_TRUE(WriteFile(cell / "request.json", ToText(changed)).ok());
  // A folder that an earlier replay is said to have left.
  fs::create_directory_symlink(secret, cell / "replay");

  const ProcessResult refused = bkm_.Run({"replay", bkm_.out(), cell.filename()});
  fs::remove(cell / "replay");
  const ProcessResult replayed = bkm_.Run({"replay", bkm_.out(), cell.filename()});

  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("replay is a link that leads out of the run"));
  EXPECT_EQ(replayed.exit_code, 0) << replayed.err;
  EXPECT_THAT(replayed.out, HasSubstr("the same verdict as in the run"));
  EXPECT_THAT(replayed.err, HasSubstr("  engine: " + before["paths"]["engine"].get<std::string>()));
  EXPECT_THAT(replayed.err, HasSubstr("  sandbox: full\n"));
  EXPECT_THAT(replayed.err, ::testing::Not(HasSubstr(secret.string())));
  Json ran = *ReadJsonFile(cell / "replay/request.json");
  EXPECT_EQ(ran["dir"], (cell / "replay").string());
  ran["dir"] = before["dir"];
  EXPECT_EQ(Difference(before, ran), "");
  EXPECT_EQ(*ReadFile(secret / "key"), "private");
  EXPECT_EQ(std::distance(fs::directory_iterator(secret), fs::directory_iterator()), 1);
}

TEST_F(DamagedRunTest, ReplayRefusesALockThatIsNotTheOneOfTheRun) {
  const std::string key = bkm_.CellOf(bkm_.ReadRun(), "refuses")["lock"];
  const fs::path file = bkm_.out() / "locks" / (key + ".json");
  Json lock = *ReadJsonFile(file);
  lock["python"] = "3.9";
  ASSERT_TRUE(WriteFile(file, ToText(lock)).ok());

  const ProcessResult replayed = bkm_.Run({"replay", bkm_.out(), "engine=*refuses*"});

  EXPECT_EQ(replayed.exit_code, 2) << replayed.out;
  EXPECT_THAT(replayed.err, HasSubstr(file.string()));
}

TEST(ResumeTest, FilesOfARunAreReadableForTheUsersOfCellsWhateverTheUmask) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root runs cells as another user";
  const BkmUnderTest bkm;
  Command command = bkm.MakeCommand({"run", bkm.WriteMatrix({"passes"})});
  command.argv.insert(command.argv.begin(), {"sh", "-c", "umask 077; exec \"$@\"", "sh"});
  const ProcessResult result = *RunCommand(command);
  EXPECT_EQ(result.exit_code, 0) << result.err;

  EXPECT_EQ(BkmUnderTest::CellOf(bkm.ReadRun(), "passes")["verdict"], "ok");
  for (const fs::path& folder : {bkm.out() / "cells", bkm.CellFolder("passes")})
    EXPECT_EQ(fs::status(folder).permissions(), fs::perms(0755)) << folder;
}

}  // namespace
}  // namespace bkm
