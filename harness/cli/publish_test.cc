// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Expected failures, differences between runs, and publishing, through the real program on tiny
// pairs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/testing/bkm_under_test.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Fails in every run except the second.
constexpr char kRaisesOnce[] = R"(
import os
with open(os.path.join(os.getcwd(), "..", "request.json")) as request:
    if ",repeat=2" not in request.read():
        raise ValueError("the first time")
)";

class PublishTest : public ::testing::Test {
 protected:
  ProcessResult RunPairs(const std::vector<std::string>& behaviours) {
    return bkm_.Run({"run", bkm_.WriteMatrix(behaviours), "--no-store"});
  }
  fs::path expectations() const { return bkm_.folder() / "fixtures/matrices/chosen.expect.txt"; }
  void Expect(const std::string& text) { ASSERT_TRUE(WriteFile(expectations(), text).ok()); }

  const BkmUnderTest bkm_;
};

TEST_F(PublishTest, WithoutAFileOfExpectationsARedCellIsNoSurprise) {
  EXPECT_EQ(RunPairs({"passes", "import_raises"}).exit_code, 0);
}

TEST_F(PublishTest, AsListedIsAsExpected) {
  Expect("# known\nengine=*/import_raises/engine -> broken at import  # it raises\n");
  const ProcessResult result = RunPairs({"passes", "import_raises"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST_F(PublishTest, ExpectationsBelongToTheMatrixFileAndNotToTheNameInIt) {
  const fs::path matrix = bkm_.WriteMatrix({"passes"});
  const fs::path renamed = matrix.parent_path() / "renamed.json";
  fs::copy(matrix, renamed);  // its name is still "chosen"
  Expect("of chosen.json, and no line of expectations\n");
  EXPECT_EQ(bkm_.Run({"run", renamed}).exit_code, 0);
  ASSERT_TRUE(
      WriteFile(matrix.parent_path() / "renamed.expect.txt", "engine=*/gone/* -> broken  # why\n")
          .ok());
  const ProcessResult result = bkm_.Run({"run", renamed});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("renamed.expect.txt:1: "));
}

TEST_F(PublishTest, EverythingThatIsNotAsListedIsTold) {
  Expect(
      "engine=*/passes/engine -> broken  # it passes by now\n"
      "engine=*/exits/engine -> refused  # it does not refuse\n"
      "engine=*/gone/engine -> broken  # nobody runs it\n");
  const ProcessResult result = RunPairs({"passes", "exits", "import_raises"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("\nUnexpected failure:\n  fixture import_raises/engine"),
                    HasSubstr("\nFailed for another reason than expected:\n  fixture exits/"),
                    HasSubstr("\nExpected to fail, but passed:\n  fixture passes/"),
                    HasSubstr("\nStale expectation:\n")));
  EXPECT_THAT(result.err, HasSubstr("bkm: re-running 2 unexpected failures\n"));
}

TEST_F(PublishTest, AcceptRewritesExpectationsSoThatTheyHold) {
  Expect("# Known.\nengine=*/passes/engine -> broken  # it passes by now\n");
  RunPairs({"passes", "import_raises"});
  const ProcessResult accept = bkm_.Run({"accept", bkm_.out(), "--expect", expectations()});
  EXPECT_EQ(accept.exit_code, 0) << accept.err;
  EXPECT_THAT(accept.out, HasSubstr(": 2 differences accepted\n"));
  EXPECT_THAT(*ReadFile(expectations()), StartsWith("# Known.\nengine=fixture@path:"));
  EXPECT_EQ(RunPairs({"passes", "import_raises"}).exit_code, 0);
}

TEST_F(PublishTest, APartOfAMatrixIsNoGroundForExpectations) {
  bkm_.Run({"run", bkm_.WriteMatrix({"passes", "import_raises"}), "--filter",
            "engine=*/import_raises/*"});
  const ProcessResult accept = bkm_.Run({"accept", bkm_.out(), "--expect", expectations()});
  EXPECT_EQ(accept.exit_code, 2);
  EXPECT_THAT(accept.err, HasSubstr("is a filtered run"));
  EXPECT_FALSE(fs::exists(expectations()));
}

TEST_F(PublishTest, ARedCellThatComesOutOtherwiseTheSecondTimeIsFlakyAndToBeRetried) {
  bkm_.WritePair("raises_once", kRaisesOnce);
  Expect("# nothing is known to be red\n");
  // Only without a sandbox can a cell tell which repetition it is.
  const ProcessResult result =
      bkm_.Run({"run", bkm_.WriteMatrix({"passes", "raises_once"}), "--no-store", "--sandbox=off"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, AllOf(HasSubstr("\nFlaky:\n"), Not(HasSubstr("Unexpected failure:\n"))));
  const Json retry = *ReadJsonFile(bkm_.out() / "retry.json");
  ASSERT_EQ(retry["cells"].size(), 1u) << retry;
  EXPECT_EQ(retry["cells"][0]["why"], "flaky");
  EXPECT_EQ(retry["cells"][0]["verdicts"].size(), 2u);
}

TEST_F(PublishTest, ABadLineStopsARunBeforeItStarts) {
  Expect("attention=flex -> ok # fine\n");
  const ProcessResult result = RunPairs({"passes"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("chosen.expect.txt:1: 'ok' is not a failing verdict"));
  EXPECT_FALSE(fs::exists(bkm_.out()));
}

TEST_F(PublishTest, ExpectationsThatAreNotThereAreMissed) {
  const ProcessResult result =
      bkm_.Run({"run", bkm_.WriteMatrix({"passes"}), "--expect", "none.txt"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err,
            "bkm: --expect none.txt: there is no such file (bkm accept RUN --expect FILE makes "
            "one)\n");
}

TEST_F(PublishTest, DiffTellsWhatBrokeAndExitsOne) {
  bkm_.WritePair("changes", "");
  RunPairs({"passes", "changes"});
  fs::copy(bkm_.out(), bkm_.folder() / "before", fs::copy_options::recursive);
  EXPECT_EQ(bkm_.Run({"diff", "before", bkm_.out()}).exit_code, 0);
  bkm_.WritePair("changes", "raise ValueError('<b>|')");
  RunPairs({"passes", "changes"});

  const ProcessResult text = bkm_.Run({"diff", "before", bkm_.out()});
  EXPECT_EQ(text.exit_code, 1) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr(": 1 regressed, 1 same\n"),
                              HasSubstr("\nregressed: broken at import, ")));
  const Json json = Json::parse(bkm_.Run({"diff", "before", bkm_.out(), "--json"}).out);
  EXPECT_EQ(json["counts"]["regressed"], 1);
  EXPECT_THAT(bkm_.Run({"diff", "before", bkm_.out(), "--markdown"}).out,
              HasSubstr("&lt;b&gt;\\|"));
  EXPECT_EQ(bkm_.Run({"diff", bkm_.out(), "before"}).exit_code, 0) << "mended is not a regression";
}

TEST_F(PublishTest, BadInputIsToldInOneSentence) {
  const std::map<std::string, std::string> uv = {{"BKM_UV", "/bin/true"}};
  EXPECT_THAT(bkm_.Run({"publish"}, uv).err, StartsWith("bkm: name run directories to publish"));
  EXPECT_THAT(bkm_.Run({"publish", "nowhere"}, uv).err,
              StartsWith("bkm: nowhere is not a run directory: it has no run.json"));
  EXPECT_THAT(bkm_.Run({"publish", "x", "--date", "today"}, uv).err,
              StartsWith("bkm: --date 'today' is not a date"));
  EXPECT_THAT(bkm_.Run({"publish", "--verify", "none.json"}, uv).err, HasSubstr("none.json"));
  ASSERT_TRUE(WriteFile(bkm_.folder() / "half/run.json",
                        R"({"schema": 1, "matrix": "m", "finished": false, "cells": []})")
                  .ok());
  EXPECT_THAT(
      bkm_.Run({"publish", "half"}, uv).err,
      HasSubstr("half/run.json: this run is not finished: repeat the bkm run to finish it"));
  EXPECT_EQ(bkm_.Run({"diff", "half", "half"}).exit_code, 2);
  ASSERT_TRUE(WriteFile(bkm_.folder() / "other/run.json",
                        R"({"schema": 2, "matrix": "m", "finished": true, "cells": []})")
                  .ok());
  EXPECT_THAT(bkm_.Run({"publish", "other"}, uv).err, HasSubstr("$.schema: 2 is out of range"));
}

TEST_F(PublishTest, FoldersAreNoVersionsThatOthersCanHave) {
  RunPairs({"passes"});
  const ProcessResult result =
      bkm_.Run({"publish", bkm_.out(), "--out", "table"}, {{"BKM_UV", "/bin/true"}});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("there is no row to publish"));
  EXPECT_FALSE(fs::exists(bkm_.folder() / "table"));
}

}  // namespace
}  // namespace bkm
