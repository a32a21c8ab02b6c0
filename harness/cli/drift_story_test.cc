// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// A branch moves after its run was accepted: torchtitan's `main` before and after it began to
// refuse sdpa for packed documents (1695457, 2026-06-09). The test moves the branch in its own
// mirror.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/testing/real_bkm.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kBefore[] = "1695457~1";
constexpr char kAfter[] = "1695457";

class DriftStoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Mirrors().empty()) GTEST_SKIP() << "no mirror of torchtitan: set BKM_GIT_MIRRORS";
    const absl::Status made = BorrowMirror("torchtitan", mirrors());
    ASSERT_TRUE(made.ok()) << made;
  }

  static fs::path mirrors() { return RealRunFolder("mirrors"); }
  static fs::path clone() { return mirrors() / "torchtitan.git"; }
  static void MoveMain(const char* revision) {
    const absl::Status moved = RunGit({"-C", clone().string(), "branch", "-f", "moving", revision});
    ASSERT_TRUE(moved.ok()) << moved;
  }

  absl::StatusOr<Json> RunMoving(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {
        "--engine",    "torchtitan", "--library", "git:torchtitan@moving",
        "--attention", "flex,sdpa",  "--steps",   "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunRealCells(arguments, "run", environment_);
  }

  ProcessResult Bkm(std::vector<std::string> arguments) {
    arguments.push_back(RealRunFolder("run").string());
    return *RunRealBkm(std::move(arguments), environment_);
  }

  const std::map<std::string, std::string> environment_ = {{"BKM_GIT_MIRRORS", mirrors().string()}};
};

TEST_F(DriftStoryTest, AcceptedRunMovesOnlyByACommitThatLiesBetween) {
  MoveMain(kBefore);
  absl::StatusOr<Json> run = RunMoving({"--repeat", "2"});
  if (IsNoNetwork(run.status())) GTEST_SKIP() << run.status();
  ASSERT_TRUE(run.ok()) << run.status();
  // With one thread on one machine, a repeat has the same bits.
  EXPECT_EQ((*run)["cells"][0]["stability"]["drift"], "bit-equal");
  EXPECT_EQ((*run)["cells"][0]["verdict"], "ok");
  EXPECT_EQ((*run)["cells"][1]["verdict"], "wrong");

  EXPECT_THAT(Bkm({"accept"}).out, HasSubstr("2 accepted, 0 unchanged, 0 refused"));
  const ProcessResult still = Bkm({"drift"});
  EXPECT_EQ(still.exit_code, 0) << still.err;
  EXPECT_THAT(still.out, HasSubstr("2 bit-equal"));
  EXPECT_THAT(Bkm({"accept"}).out, HasSubstr("0 accepted, 2 unchanged, 0 refused"));

  // So have cells that each start anew, and not in a process forked from a loaded worker.
  run = RunMoving({"--fresh", "--rerun", "--no-store"});
  ASSERT_TRUE(run.ok()) << run.status();
  const ProcessResult fresh = Bkm({"drift"});
  EXPECT_EQ(fresh.exit_code, 0) << fresh.err;
  EXPECT_THAT(fresh.out, HasSubstr("2 bit-equal"));

  MoveMain(kAfter);
  run = RunMoving();
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ((*run)["cells"][1]["verdict"], "refused");
  const ProcessResult moved = Bkm({"drift"});
  EXPECT_EQ(moved.exit_code, 1) << moved.err;
  EXPECT_THAT(moved.out, HasSubstr("verdict-changed torchtitan moving, sdpa"));
  EXPECT_THAT(moved.out, HasSubstr("wrong at mask"));

  const ProcessResult unnamed = Bkm({"accept"});
  EXPECT_EQ(unnamed.exit_code, 1);
  EXPECT_THAT(unnamed.err, HasSubstr("--moved-by"));
  const ProcessResult innocent = Bkm({"accept", "--moved-by", "git:torchtitan@1695457~1"});
  EXPECT_EQ(innocent.exit_code, 1);
  EXPECT_THAT(innocent.err, HasSubstr("cannot have changed the cell"));
  const ProcessResult unknown = Bkm({"accept", "--moved-by", "git:torchtitan@no-such-branch"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(Bkm({"accept", "--moved-by", "git:torchtitan@1695457", "--because", "refuses"}).out,
              HasSubstr("1 accepted, 1 unchanged, 0 refused"));
  EXPECT_EQ(Bkm({"drift"}).exit_code, 0);

  const absl::StatusOr<Json> accepted =
      ReadJsonFile(RealRunFolder("accepted") / "ad-hoc" / "accepted.json");
  ASSERT_TRUE(accepted.ok()) << accepted.status();
  EXPECT_THAT(accepted->dump(),
              AllOf(HasSubstr(R"("proof":"stated")"), HasSubstr(R"("because":"refuses")"),
                    HasSubstr(R"("range":"inside")")));
}

}  // namespace
}  // namespace bkm
