// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// bkm bisect through the real program and worker, on small repositories with known culprits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/cli/history_fixture.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr char kBroken[] = "import fake_library.moved_away\n";
constexpr char kRefuses[] =
    "def refuse(*_):\n    raise NotImplementedError('flex is not supported')\n"
    "Model.__init__ = refuse\n";

// Waits while the file `hold` exists in its tree, if the library sets WAITS.
constexpr char kWaits[] = R"(
import os, time
import fake_library
while getattr(fake_library, "WAITS", False) and os.path.exists(
    os.path.join(os.path.dirname(os.path.dirname(__file__)), "hold")):
    time.sleep(0.05)
)";

class BisectTest : public HistoryFixture {
 protected:
  BisectTest() : HistoryFixture(kWaits) {}

  std::vector<std::string> Arguments(const std::vector<std::string>& more) const {
    return CommandLine("bisect", more);
  }
  ProcessResult Bisect(const std::vector<std::string>& more) const {
    return bkm_.Run(Arguments(more));
  }
  Json Result() const { return *ReadJsonFile(bkm_.out() / "bisect.json"); }

  // The inode of each observation file; it changes when the file is written again.
  std::map<std::string, ino_t> Observations() const {
    std::map<std::string, ino_t> files;
    std::error_code error;
    for (const fs::directory_entry& cell : fs::directory_iterator(bkm_.out() / "cells", error)) {
      struct stat status = {};
      const fs::path file = cell.path() / "observation.json";
      if (::stat(file.c_str(), &status) == 0) files[file] = status.st_ino;
    }
    return files;
  }
};

TEST_F(BisectTest, NamesTheCommitOfAMergedBranchAndMeasuresNothingTwice) {
  const std::string first = Commit();
  Commit();
  library_.Branch("topic", "HEAD");
  const std::string parent = Commit();
  const std::string culprit = Commit(kBroken);
  Commit(kBroken);
  library_.Checkout("main");
  library_.Write("fake_library/other.py", "");
  library_.Commit("Add another file", "2026-03-06");
  ++count_;
  library_.Merge("topic", "Merge topic", "2026-03-07");
  ++count_;
  const std::string last = Commit(kBroken);

  const ProcessResult result = Bisect({"--good", first});

  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("Broken by fake_library " + culprit.substr(0, 9) +
                                          " (2026-03-04, #4) Commit 4 (#4)"),
                                HasSubstr(": broken at import, module-missing")));
  const Json json = Result();
  EXPECT_EQ(json["status"], "found");
  EXPECT_EQ(json["direction"], "broke");
  EXPECT_EQ(json["made_by"], "commit");
  EXPECT_EQ(json["culprit"]["commit"], culprit);
  EXPECT_EQ(json["culprit"]["pull_request"], 4);
  EXPECT_EQ(json["culprit"]["reason"], "module-missing");
  EXPECT_EQ(json["parents"][0]["commit"], parent);
  EXPECT_EQ(json["parents"][0]["verdict"], "ok");
  EXPECT_EQ(json["older_end"]["commit"], first);
  EXPECT_EQ(json["newer_end"]["commit"], last);
  EXPECT_EQ(json["probes"], json["measured"]);
  EXPECT_THAT(*ReadFile(bkm_.out() / "search.log"),
              HasSubstr("fake_library " + culprit.substr(0, 9) +
                        " (2026-03-04, #4), run 2: broken at import, module-missing"));

  const auto before = Observations();
  const ProcessResult again = Bisect({"--good", first, "--json"});

  ASSERT_EQ(again.exit_code, 0) << again.err;
  const Json repeated = *ParseJson(again.out, "bisect");
  EXPECT_EQ(repeated["measured"], 0);
  EXPECT_EQ(repeated["culprit"], json["culprit"]);
  EXPECT_EQ(Observations(), before);
}

TEST_F(BisectTest, ItsJsonIsWhatTheSchemaSays) {
  Commit();
  Commit(kBroken);
  ASSERT_EQ(Bisect({}).exit_code, 0);
  Json result = Result();
  EXPECT_TRUE(SchemaAccepts("harness/history/bisect.schema.json", result));
  result["status"] = "maybe";
  EXPECT_FALSE(SchemaAccepts("harness/history/bisect.schema.json", result));
}

TEST_F(BisectTest, ATimelineTellsEveryStretch) {
  for (int i = 0; i < 4; ++i) Commit();
  const std::string broke = Commit(kBroken);
  for (int i = 0; i < 3; ++i) Commit(kBroken);
  const std::string refuses = Commit(kRefuses);
  for (int i = 0; i < 3; ++i) Commit(kRefuses);
  const std::string mended = Commit();
  std::vector<std::string> arguments =
      Arguments({"--since", "2026-03-02", "--every", "4", "--confirm"});
  arguments[0] = "timeline";

  const ProcessResult result = bkm_.Run(arguments);

  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("  differently bad by fake_library " + refuses.substr(0, 9) +
                                    " (2026-03-09, #9) Commit 9 (#9) (confirmed)"));
  Json json = *ReadJsonFile(bkm_.out() / "timeline.json");
  EXPECT_TRUE(SchemaAccepts("harness/history/timeline.schema.json", json));
  ASSERT_EQ(json["boundaries"].size(), 3u);
  EXPECT_EQ(json["boundaries"][0]["culprit"]["commit"], broke);
  EXPECT_EQ(json["boundaries"][0]["change"], "broke");
  EXPECT_EQ(json["boundaries"][1]["culprit"]["commit"], refuses);
  EXPECT_EQ(json["boundaries"][2]["culprit"]["commit"], mended);
  EXPECT_EQ(json["boundaries"][2]["change"], "mended");
  EXPECT_EQ(json["stretches"][0]["first"]["title"], "Commit 1 (#1)");
  EXPECT_EQ(json["stretches"][3]["state"], "good");
  EXPECT_LE(json["resolution"], 3);
}

TEST_F(BisectTest, FindsTheOtherEndByItselfAndTheCommitThatMended) {
  for (int i = 0; i < 5; ++i) Commit(kBroken);
  const std::string mended = Commit();
  for (int i = 0; i < 4; ++i) Commit();

  ASSERT_EQ(Bisect({}).exit_code, 0);

  EXPECT_EQ(Result()["culprit"]["commit"], mended);
  EXPECT_EQ(Result()["direction"], "mended");
}

TEST_F(BisectTest, GoesOnAfterItWasKilled) {
  constexpr char kHeld[] = "WAITS = True\n";
  const std::string first = Commit();
  for (int i = 0; i < 5; ++i) Commit(kHeld);
  const std::string culprit = Commit(absl::StrCat(kHeld, kBroken));
  for (int i = 0; i < 5; ++i) Commit(absl::StrCat(kHeld, kBroken));
  Commit(kBroken);
  const fs::path hold = bkm_.packages() / "searched/engine/hold";
  ASSERT_TRUE(WriteFile(hold, "").ok());
  const PipedProcess process =
      *StartPiped(bkm_.MakeCommand(Arguments({"--good", first})), bkm_.folder() / "stderr");
  // Only the good commits between the ends wait: a broken library fails before its WAITS is read.
  for (int i = 0; i < 600 && Observations().size() < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ::kill(process.pid, SIGKILL);
  int status = 0;
  ::waitpid(process.pid, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status)) << "it ended before it was killed";
  const auto before = Observations();
  ASSERT_GE(before.size(), 2u);
  fs::remove(hold);

  const ProcessResult result = Bisect({"--good", first});

  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Result()["culprit"]["commit"], culprit);
  EXPECT_THAT(result.err, HasSubstr("trials were measured before"));
  EXPECT_THAT(Observations(), IsSupersetOf(before));
}

TEST_F(BisectTest, CommitsThatLackThePackageAreSteppedAroundAndReported) {
  const std::string first = Commit();
  Commit();
  std::vector<std::string> without;
  for (int i = 0; i < 3; ++i) {
    ++count_;
    library_.Git({"rm", "--quiet", "-r", "--ignore-unmatch", "fake_library"});
    library_.Write("notes.txt", Day());
    without.push_back(library_.Commit("Remove all", Day()));
  }
  const std::string back = Commit(kBroken);
  Commit(kBroken);

  const ProcessResult result = Bisect({"--good", first});

  EXPECT_EQ(result.exit_code, 1) << result.err;
  const Json json = Result();
  EXPECT_EQ(json["status"], "ambiguous");
  EXPECT_EQ(json["culprit"], Json());
  std::vector<std::string> candidates;
  for (const Json& commit : json["candidates"]) candidates.push_back(commit["commit"]);
  without.push_back(back);
  EXPECT_EQ(candidates, without);
  EXPECT_EQ(json["candidates"][0]["reason"], "source-incomplete");
}

TEST_F(BisectTest, UntilAReasonFindsTheCommitThatBroughtIt) {
  const std::string first = Commit();
  Commit(kRefuses);
  const std::string refused = Commit(kRefuses);
  const std::string culprit = Commit(kBroken);
  Commit(kBroken);

  const ProcessResult any = Bisect({"--good", first});
  EXPECT_EQ(Result()["culprit"]["title"], "Commit 2 (#2)");
  EXPECT_THAT(any.out, HasSubstr("the newer end differs:"));

  ASSERT_EQ(Bisect({"--good", refused, "--until", "reason=module-missing"}).exit_code, 0);
  EXPECT_EQ(Result()["culprit"]["commit"], culprit);
  EXPECT_EQ(Result()["bad_means"], "reason=module-missing");
}

TEST_F(BisectTest, EndsTheWrongWayRoundFindTheBoundaryAllTheSame) {
  const std::string first = Commit();
  const std::string culprit = Commit(kBroken);
  const std::string last = Commit(kBroken);

  ASSERT_EQ(Bisect({"--good", last, "--bad", first}).exit_code, 0);

  EXPECT_EQ(Result()["culprit"]["commit"], culprit);
  EXPECT_EQ(Result()["direction"], "broke");
}

TEST_F(BisectTest, WithoutABoundaryNoneIsNamed) {
  const std::string first = Commit();
  Commit(kBroken);
  Commit();

  const ProcessResult result = Bisect({"--good", first});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(Result()["status"], "none");
  EXPECT_THAT(result.out, HasSubstr("No culprit found (none): both ends are good"));
}

TEST_F(BisectTest, AFlakySearchSaysHowSureItIs) {
  const std::string first = Commit();
  for (int i = 0; i < 3; ++i) Commit();
  const std::string culprit = Commit(kBroken);
  Commit(kBroken);

  const ProcessResult result = Bisect({"--good", first, "--flaky", "--confidence", "0.9"});

  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Result()["culprit"]["commit"], culprit);
  EXPECT_GE(Result()["flaky"]["confidence"], 0.9);
  EXPECT_THAT(result.out, HasSubstr("% sure after "));
}

TEST_F(BisectTest, TheLadderGoesDownTheReleasesAndThenBetweenTwo) {
  Commit();
  library_.Git({"tag", "v1"});
  Commit();
  // v2 is on a branch of its own.
  library_.Branch("release", "HEAD");
  library_.Write("CHANGELOG", "v2\n");
  library_.Commit("Release v2", "2026-03-02");
  library_.Git({"tag", "v2"});
  library_.Checkout("main");
  Commit();
  const std::string culprit = Commit(kBroken);
  Commit(kBroken);
  library_.Git({"tag", "v3"});
  Commit(kBroken);

  const ProcessResult result = Bisect({"--ladder"});

  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("releases, newest first: v3; v2; v1"));
  EXPECT_EQ(Result()["culprit"]["commit"], culprit);
  EXPECT_EQ(Result()["older_end"]["title"], "Commit 2 (#2)");
}

TEST_F(BisectTest, MistakesAreOneSentenceWithWhatToDo) {
  Commit();
  const auto error = [&](std::vector<std::string> more) {
    const ProcessResult result = Bisect(more);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, Not(HasSubstr("bug")));
    return result.err;
  };
  EXPECT_THAT(error({"--until", "satge=golden"}),
              HasSubstr("bkm: --until 'satge=golden': unknown key 'satge': did you mean 'stage'?"));
  EXPECT_THAT(error({"--good", "main"}), HasSubstr("both ends are fake_library "));
  EXPECT_THAT(error({"--good", "v9"}), HasSubstr("git:fake_library@v9: no such revision in "));
  EXPECT_THAT(bkm_.Run({"bisect", matrix_, "--axis", "engine", "--git-mirror",
                        (bkm_.folder() / "mirrors").string()})
                  .err,
              HasSubstr("/searched/engine has no commits to search: name a revision, as git:"));
}

}  // namespace
}  // namespace bkm
